// SPDX-License-Identifier: BSD-2-Clause
// When does a requester give up? (ibv_modify_qp(3): timeout, retry_cnt, rnr_retry, min_rnr_timer)
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

ibv_qp_attr brief() {
  ibv_qp_attr attributes = usual_pair_attributes();
  attributes.timeout = 8;  // about a millisecond
  attributes.retry_cnt = 1;
  return attributes;
}

void expect_gives_up(End& end) {
  ASSERT_EQ(end.send(8, 1), 0);
  ASSERT_EQ(end.send(8, 2), 0);
  ASSERT_EQ(end.receive(8, 3), 0);
  const ibv_wc wc = end.sent();
  EXPECT_EQ(wc.wr_id, 1u);
  EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(end.sent().status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(end.received().status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(end.state(), IBV_QPS_ERR);
}

TEST(Retries, EndWhereThePeerIsGone) {
  End a;
  std::uint32_t gone = 0;
  {
    End b;
    gone = b.qp()->qp_num;
  }
  a.connect(gone, brief());
  expect_gives_up(a);
}

TEST(Retries, EndWhereThePeerIsNotReady) {
  for (const auto state : {IBV_QPS_RESET, IBV_QPS_INIT}) {
    End a;
    End b;
    a.partner_with(b);
    if (state == IBV_QPS_INIT) {
      ASSERT_EQ(b.to_init(b.usual()), 0);
    }
    a.connect(b.qp()->qp_num, brief());
    expect_gives_up(a);
  }
}

TEST(Retries, EndWhereThePeerTalksToAnother) {
  End a;
  End b;
  End c;
  a.partner_with(b);
  b.connect(c.qp()->qp_num);
  a.connect(b.qp()->qp_num, brief());
  ASSERT_EQ(b.receive(64), 0);
  expect_gives_up(a);
  EXPECT_TRUE(b.is_quiet());
}

TEST(Retries, EndWhereThePeerIsADatagramQueuePair) {
  EndSetup datagrams;
  datagrams.type = IBV_QPT_UD;
  End a;
  End b(datagrams);
  a.partner_with(b);
  b.connect(0);
  ASSERT_EQ(b.receive(64), 0);
  a.connect(b.qp()->qp_num, brief());
  expect_gives_up(a);
  EXPECT_TRUE(b.is_quiet());
}

// A socket that only counts stands for the peer: the UDP port is the QPN without its last 8 bits.
TEST(Retries, AreNoFewerThanWereSet) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
  ASSERT_GE(fd, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::uint16_t port = 32'768;
  do {
    address.sin_port = htons(++port);
  } while (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0);
  for (const std::uint8_t retries : {0, 1, 3}) {
    ibv_qp_attr attributes = brief();
    attributes.retry_cnt = retries;
    End a;
    a.connect(std::uint32_t{port} << 8 | 2, attributes);
    ASSERT_EQ(a.send(8), 0);
    EXPECT_EQ(a.sent().status, IBV_WC_RETRY_EXC_ERR);
    int packets = 0;
    char bytes[256];
    while (::recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0) ++packets;
    EXPECT_GE(packets, 1 + retries);
  }
  ::close(fd);
}

TEST(Timeout, OfZeroWaitsWithoutLimit) {
  ibv_qp_attr patient = brief();
  patient.timeout = 0;
  patient.retry_cnt = 0;
  End a;
  std::uint32_t gone = 0;
  {
    End b;
    gone = b.qp()->qp_num;
  }
  a.connect(gone, patient);
  ASSERT_EQ(a.send(8), 0);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(a.is_quiet());
  EXPECT_EQ(a.state(), IBV_QPS_RTS);
  ASSERT_EQ(a.to_error(), 0);
  EXPECT_EQ(a.sent().status, IBV_WC_WR_FLUSH_ERR);
}

TEST(Timeout, OfZeroLetsAnswersEndWork) {
  ibv_qp_attr patient = usual_pair_attributes();
  patient.timeout = 0;
  Pair two({}, patient, patient);
  ASSERT_EQ(two.b.receive(64), 0);
  ASSERT_EQ(two.a.send(8), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
}

// A receiver that is not ready.
class NotReady : public testing::TestWithParam<ibv_wr_opcode> {
 protected:
  static SendRequest request(Pair& two) {
    return SendRequest(GetParam(), {two.a.part(0, 8)}, 1).at(two.b.place(0));
  }
};
INSTANTIATE_TEST_SUITE_P(All, NotReady,
                         testing::Values(IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
                                         IBV_WR_RDMA_WRITE_WITH_IMM));

TEST_P(NotReady, EndsFiniteRetriesInAnError) {
  for (const std::uint8_t retries : {0, 1, 6}) {
    ibv_qp_attr few = usual_pair_attributes();
    few.rnr_retry = retries;
    Pair two({}, few, few);
    ASSERT_EQ(two.a.post(request(two)), 0);
    ASSERT_EQ(two.a.send(8, 2), 0);
    EXPECT_EQ(two.a.sent().status, IBV_WC_RNR_RETRY_EXC_ERR);
    EXPECT_EQ(two.a.sent().status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(two.a.state(), IBV_QPS_ERR);
    EXPECT_TRUE(two.b.is_quiet());
    EXPECT_EQ(two.b.state(), IBV_QPS_RTS) << "it is the requester's error";
    EXPECT_FALSE(next_event(two.b.context(), std::chrono::milliseconds(0)));
  }
}

TEST_P(NotReady, EndsInfiniteRetriesWithAReceive) {
  Pair two;
  ASSERT_EQ(two.a.post(request(two)), 0);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(two.a.is_quiet());
  ASSERT_EQ(two.b.receive(64, 9), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  EXPECT_EQ(two.b.received().wr_id, 9u);
}

// One retry, and a receiver that asks to wait for long: the receive is there when that is over.
TEST(RnrTimer, IsTheReceivers) {
  ibv_qp_attr one = usual_pair_attributes();
  one.rnr_retry = 1;
  one.min_rnr_timer = 31;
  Pair two({}, one, one);
  ASSERT_EQ(two.a.send(8), 0);
  EXPECT_TRUE(two.a.is_quiet());
  ASSERT_EQ(two.b.receive(64), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
}

TEST(RnrTimer, MayBeChangedInReadyToSend) {
  Pair two;
  ibv_qp_attr longer{};
  longer.min_rnr_timer = 30;
  ASSERT_EQ(ibv_modify_qp(two.b.qp(), &longer, IBV_QP_MIN_RNR_TIMER), 0);
  EXPECT_EQ(two.b.query().min_rnr_timer, 30);
}

}  // namespace
}  // namespace weft::verbs_conformance
