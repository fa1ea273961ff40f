// SPDX-License-Identifier: BSD-2-Clause
// What do unreliable datagrams promise, and what not? (IBTA 9.8.3, ibv_create_ah(3))
#include <array>
#include <cerrno>
#include <cstring>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

constexpr std::size_t kGrh = 40;

EndSetup datagrams() {
  EndSetup setup;
  setup.type = IBV_QPT_UD;
  return setup;
}

class Datagram : public testing::Test {
 protected:
  Datagram() : two(datagrams()) {
    ibv_ah_attr address = address_of(gid_of(two.a.context()));
    ah.reset(ibv_create_ah(two.a.pd(), &address));
    EXPECT_NE(ah, nullptr);
  }
  SendRequest request(std::size_t length, ibv_wr_opcode opcode = IBV_WR_SEND) {
    SendRequest request(opcode, {two.a.part(0, length)}, 1);
    request.wr.wr.ud = {ah.get(), two.b.qp()->qp_num, kQueueKey};
    return request;
  }
  // Nothing comes of it, and both ends go on.
  void expect_dropped(const SendRequest& request) {
    ASSERT_EQ(two.a.post(request), 0);
    EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
    EXPECT_TRUE(two.b.is_quiet());
    EXPECT_EQ(two.b.state(), IBV_QPS_RTS);
    EXPECT_EQ(two.a.state(), IBV_QPS_RTS);
  }
  Pair two;
  Owned<ibv_ah> ah;
};

TEST_F(Datagram, BeginsWithAGlobalRoutingHeader) {
  std::memset(two.a.memory(), 0x5C, 100);
  ASSERT_EQ(two.b.receive(kGrh + 100), 0);
  SendRequest send = request(100, IBV_WR_SEND_WITH_IMM);
  send.wr.imm_data = 0x0807'0605;
  ASSERT_EQ(two.a.post(send), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  const ibv_wc wc = two.b.received();
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV);
  EXPECT_EQ(wc.byte_len, kGrh + 100);
  EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_GRH | IBV_WC_WITH_IMM));
  EXPECT_EQ(wc.imm_data, 0x0807'0605u);
  EXPECT_EQ(wc.src_qp, two.a.qp()->qp_num);
  EXPECT_EQ(wc.qp_num, two.b.qp()->qp_num);
  EXPECT_EQ(std::memcmp(two.b.memory() + kGrh, two.a.memory(), 100), 0);
}

TEST_F(Datagram, NamesAnAddressForTheAnswer) {
  ASSERT_EQ(two.b.receive(256), 0);
  ASSERT_EQ(two.a.post(request(8)), 0);
  ibv_wc wc = two.b.received();
  ibv_grh grh{};
  std::memcpy(&grh, two.b.memory(), sizeof grh);
  const Owned<ibv_ah> back(ibv_create_ah_from_wc(two.b.pd(), &wc, &grh, 1));
  ASSERT_NE(back, nullptr);
  ASSERT_EQ(two.a.receive(256, 5), 0);
  SendRequest answer(IBV_WR_SEND, {two.b.part(0, 8)});
  answer.wr.wr.ud = {back.get(), wc.src_qp, kQueueKey};
  ASSERT_EQ(two.b.post(answer), 0);
  EXPECT_EQ(two.a.received().wr_id, 5u);
}

TEST_F(Datagram, IsDroppedWithoutAReceive) { expect_dropped(request(8)); }

TEST_F(Datagram, IsDroppedWithAWrongQueueKey) {
  ASSERT_EQ(two.b.receive(256), 0);
  SendRequest wrong = request(8);
  wrong.wr.wr.ud.remote_qkey = kQueueKey + 1;
  expect_dropped(wrong);
}

TEST_F(Datagram, IsDroppedForAnUnknownQueuePair) {
  ASSERT_EQ(two.b.receive(256), 0);
  SendRequest wrong = request(8);
  wrong.wr.wr.ud.remote_qpn = two.b.qp()->qp_num ^ 0x80;
  expect_dropped(wrong);
}

// A Q_Key with its highest bit stands for that of the sending queue pair (IBTA 10.2.5).
TEST_F(Datagram, HasTheSendersQueueKeyInPlaceOfAPrivilegedOne) {
  ASSERT_EQ(two.b.receive(256), 0);
  SendRequest send = request(8);
  send.wr.wr.ud.remote_qkey = 0x8000'0000;
  ASSERT_EQ(two.a.post(send), 0);
  EXPECT_EQ(two.b.received().status, IBV_WC_SUCCESS);
}

TEST_F(Datagram, ThatIsTooLongForItsReceiveEndsTheReceiver) {
  ASSERT_EQ(two.b.receive(kGrh + 7, 1), 0);
  ASSERT_EQ(two.b.receive(kGrh + 8, 2), 0);
  ASSERT_EQ(two.a.post(request(8)), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  EXPECT_EQ(two.b.received().status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(two.b.received().status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(two.b.state(), IBV_QPS_ERR);
  EXPECT_EQ(two.a.state(), IBV_QPS_RTS);
}

TEST_F(Datagram, WithABadKeyOfItsReceiveEndsTheReceiver) {
  ibv_sge buffer = two.b.part(0, 256);
  buffer.lkey += 1;
  ASSERT_EQ(two.b.receive(ReceiveRequest({buffer})), 0);
  ASSERT_EQ(two.a.post(request(8)), 0);
  EXPECT_EQ(two.b.received().status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(two.b.state(), IBV_QPS_ERR);
}

// Errors of the send queue leave the receive queue alone (SQE), and end with a transition to RTS.
class FailedSend : public Datagram {
 protected:
  void fails(const SendRequest& bad, ibv_wc_status status) {
    ASSERT_EQ(two.a.receive(256, 9), 0);
    ASSERT_EQ(two.a.post(bad), 0);
    ASSERT_EQ(two.a.post(request(8)), 0);
    EXPECT_EQ(two.a.sent().status, status);
    EXPECT_EQ(two.a.sent().status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_TRUE(two.a.is_quiet()) << "the receive was flushed";
    EXPECT_EQ(two.a.state(), IBV_QPS_SQE);
    ASSERT_EQ(two.a.post(request(8)), 0);
    EXPECT_EQ(two.a.sent().status, IBV_WC_WR_FLUSH_ERR);
    ibv_qp_attr again{};
    again.qp_state = IBV_QPS_RTS;
    again.cur_qp_state = IBV_QPS_SQE;
    ASSERT_EQ(ibv_modify_qp(two.a.qp(), &again, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
    ASSERT_EQ(two.b.receive(256, 1), 0);
    ASSERT_EQ(two.a.post(request(8)), 0);
    EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
    EXPECT_EQ(two.b.received().wr_id, 1u);
  }
};

TEST_F(FailedSend, OfAnOneSidedOperation) {
  SendRequest write = request(8, IBV_WR_RDMA_WRITE);
  write.wr.wr.ud = {ah.get(), two.b.qp()->qp_num, kQueueKey};
  fails(write, IBV_WC_LOC_QP_OP_ERR);
}
TEST_F(FailedSend, OfAReadAndOfAnAtomicOperation) {
  fails(request(8, IBV_WR_RDMA_READ), IBV_WC_LOC_QP_OP_ERR);
}
TEST_F(FailedSend, LongerThanThePathMtu) { fails(request(4097), IBV_WC_LOC_LEN_ERR); }
TEST_F(FailedSend, WithABadLocalKey) {
  SendRequest bad = request(8);
  bad.sges[0].lkey += 1;
  fails(bad, IBV_WC_LOC_PROT_ERR);
}
TEST_F(FailedSend, ToAnAddressOfAnotherProtectionDomain) {
  const Owned<ibv_pd> other(ibv_alloc_pd(two.a.context()));
  ibv_ah_attr address = address_of(gid_of(two.a.context()));
  const Owned<ibv_ah> foreign(ibv_create_ah(other.get(), &address));
  SendRequest bad = request(8);
  bad.wr.wr.ud.ah = foreign.get();
  fails(bad, IBV_WC_LOC_QP_OP_ERR);
}

TEST_F(Datagram, NeedsAnAddress) {
  SendRequest none = request(8);
  none.wr.wr.ud.ah = nullptr;
  EXPECT_EQ(two.a.post(none), EINVAL);
}

TEST_F(Datagram, OfTheLargestSizeArrives) {
  for (std::size_t i = 0; i < 4096; ++i) two.a.memory()[i] = static_cast<std::byte>(i * 13);
  ASSERT_EQ(two.b.receive(kGrh + 4096), 0);
  ASSERT_EQ(two.a.post(request(4096)), 0);
  EXPECT_EQ(two.b.received().byte_len, kGrh + 4096);
  EXPECT_EQ(std::memcmp(two.b.memory() + kGrh, two.a.memory(), 4096), 0);
}

TEST_F(Datagram, SolicitsAnEvent) {
  ASSERT_EQ(two.b.receive(256), 0);
  SendRequest send = request(8);
  ASSERT_EQ(two.a.post(send.flagged(IBV_SEND_SOLICITED | IBV_SEND_INLINE)), 0);
  EXPECT_EQ(two.b.received().status, IBV_WC_SUCCESS);
}

TEST(AddressHandle, NeedsAGlobalAddressOfTheDevice) {
  const auto context = open_device();
  const Owned<ibv_pd> pd(ibv_alloc_pd(context.get()));
  const auto refused = [&](auto change) {
    ibv_ah_attr address = address_of(gid_of(context.get()));
    change(address);
    errno = 0;
    ibv_ah* const made = ibv_create_ah(pd.get(), &address);
    const int error = errno;
    if (made != nullptr) ibv_destroy_ah(made);
    return made == nullptr ? error : 0;
  };
  EXPECT_EQ(refused([](ibv_ah_attr&) {}), 0);
  EXPECT_EQ(refused([](ibv_ah_attr& each) { each.is_global = 0; }), EINVAL);
  EXPECT_EQ(refused([](ibv_ah_attr& each) { each.port_num = 2; }), EINVAL);
  EXPECT_EQ(refused([](ibv_ah_attr& each) { each.grh.sgid_index = 255; }), EINVAL);
  EXPECT_EQ(refused([](ibv_ah_attr& each) { each.grh.dgid = {}; }), EINVAL);
  EXPECT_EQ(ibv_create_ah(pd.get(), nullptr), nullptr);
}

}  // namespace
}  // namespace weft::verbs_conformance
