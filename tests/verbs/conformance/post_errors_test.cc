// SPDX-License-Identifier: BSD-2-Clause
// Which work requests does a post refuse, and what does it say? (ibv_post_send(3),
// ibv_post_recv(3))
#include <array>
#include <cerrno>
#include <string>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

int post(End& end, SendRequest& request, ibv_send_wr** bad) {
  return ibv_post_send(end.qp(), request.get(), bad);
}

class InvalidRequest : public testing::Test {
 protected:
  void refuses(SendRequest request) {
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(post(two.a, request, &bad), EINVAL);
    EXPECT_EQ(bad, &request.wr);
    EXPECT_TRUE(two.a.is_quiet());
    EXPECT_EQ(two.a.state(), IBV_QPS_RTS);
  }
  Pair two;
};

TEST_F(InvalidRequest, UnknownOpcode) {
  refuses({static_cast<ibv_wr_opcode>(77), {two.a.part(0, 8)}});
}
TEST_F(InvalidRequest, OpcodesOfThingsThatAreNotOffered) {
  for (const auto opcode : {IBV_WR_LOCAL_INV, IBV_WR_BIND_MW, IBV_WR_SEND_WITH_INV, IBV_WR_TSO}) {
    refuses({opcode, {two.a.part(0, 8)}});
  }
}
TEST_F(InvalidRequest, UnknownFlags) {
  refuses(SendRequest(IBV_WR_SEND, {two.a.part(0, 8)}).flagged(1u << 20));
  refuses(SendRequest(IBV_WR_SEND, {two.a.part(0, 8)}).flagged(IBV_SEND_IP_CSUM));
}
TEST_F(InvalidRequest, MoreEntriesThanTheQueuePairWasCreatedWith) {
  refuses({IBV_WR_SEND, std::vector<ibv_sge>(5, two.a.part(0, 8))});
}
TEST_F(InvalidRequest, NegativeNumberOfEntries) {
  SendRequest request(IBV_WR_SEND, {two.a.part(0, 8)});
  request.get()->num_sge = -1;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(two.a.qp(), &request.wr, &bad), EINVAL);
  EXPECT_EQ(bad, &request.wr);
}
TEST_F(InvalidRequest, EntriesWithoutAList) {
  SendRequest request(IBV_WR_SEND, {});
  request.get()->num_sge = 1;
  request.wr.sg_list = nullptr;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(two.a.qp(), &request.wr, &bad), EINVAL);
  EXPECT_EQ(bad, &request.wr);
}
TEST_F(InvalidRequest, MoreInlineBytesThanWereGranted) {
  refuses(SendRequest(IBV_WR_SEND, {two.a.part(0, 65)}).flagged(IBV_SEND_INLINE));
  refuses(SendRequest(IBV_WR_RDMA_WRITE, {two.a.part(0, 40), two.a.part(0, 40)})
              .at(two.b.place(0))
              .flagged(IBV_SEND_INLINE));
}
TEST_F(InvalidRequest, InlineBytesOfARead) {
  refuses(SendRequest(IBV_WR_RDMA_READ, {two.a.part(0, 8)})
              .at(two.b.place(0))
              .flagged(IBV_SEND_INLINE));
}

TEST(PostErrors, RequestsBeforeTheBadOneArePosted) {
  Pair two;
  for (std::uint64_t id = 0; id < 3; ++id) ASSERT_EQ(two.b.receive(8, id), 0);
  SendRequest first(IBV_WR_SEND, {two.a.part(0, 8)}, 1);
  SendRequest second(IBV_WR_SEND, {two.a.part(0, 8)}, 2);
  SendRequest third(static_cast<ibv_wr_opcode>(99), {two.a.part(0, 8)}, 3);
  SendRequest fourth(IBV_WR_SEND, {two.a.part(0, 8)}, 4);
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(two.a.qp(), first.get(second.get(third.get(fourth.get()))), &bad),
            EINVAL);
  EXPECT_EQ(bad, &third.wr);
  EXPECT_EQ(two.a.sent().wr_id, 1u);
  EXPECT_EQ(two.a.sent().wr_id, 2u);
  EXPECT_TRUE(two.a.is_quiet());
}

TEST(PostErrors, ReceivesBeforeTheBadOneArePosted) {
  Pair two;
  ReceiveRequest first({two.b.part(0, 8)}, 1);
  ReceiveRequest second(std::vector<ibv_sge>(5, two.b.part(0, 8)), 2);
  ReceiveRequest third({two.b.part(0, 8)}, 3);
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_recv(two.b.qp(), first.get(second.get(third.get())), &bad), EINVAL);
  EXPECT_EQ(bad, &second.wr);
  EXPECT_EQ(two.a.send(8), 0);
  EXPECT_EQ(two.b.received().wr_id, 1u);
}

TEST(PostErrors, AnEmptyListIsNoError) {
  Pair two;
  ibv_send_wr* bad_send = nullptr;
  ibv_recv_wr* bad_receive = nullptr;
  EXPECT_EQ(ibv_post_send(two.a.qp(), nullptr, &bad_send), 0);
  EXPECT_EQ(ibv_post_recv(two.a.qp(), nullptr, &bad_receive), 0);
  EXPECT_EQ(bad_send, nullptr);
  EXPECT_EQ(bad_receive, nullptr);
}

TEST(PostErrors, AReceiveWithAnInvalidList) {
  Pair two;
  ReceiveRequest request({two.b.part(0, 8)});
  ibv_recv_wr* bad = nullptr;
  request.get()->num_sge = -1;
  EXPECT_EQ(ibv_post_recv(two.b.qp(), &request.wr, &bad), EINVAL);
  EXPECT_EQ(bad, &request.wr);
  request.wr.num_sge = 2;
  request.wr.sg_list = nullptr;
  EXPECT_EQ(ibv_post_recv(two.b.qp(), &request.wr, &bad), EINVAL);
}

TEST(PostErrors, AFullSendQueueNamesTheRequestThatHasNoPlace) {
  Pair two;
  std::vector<SendRequest> requests(65, SendRequest(IBV_WR_SEND, {two.a.part(0, 8)}));
  ibv_send_wr* next = nullptr;
  for (std::size_t i = requests.size(); i-- != 0;) next = requests[i].get(next);
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(two.a.qp(), next, &bad), ENOMEM);
  EXPECT_EQ(bad, &requests[64].wr);
  for (int i = 0; i < 64; ++i) ASSERT_EQ(two.b.receive(8), 0);
  for (int i = 0; i < 64; ++i) ASSERT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  EXPECT_EQ(two.a.send(8), 0);
}

// As on hardware: a completion that was polled frees the places of the requests before it, too.
TEST(PostErrors, UnsignaledRequestsKeepTheirPlacesUntilALaterCompletion) {
  EndSetup setup;
  setup.capacities = {4, 16, 1, 1, 0};
  setup.all_signaled = false;
  Pair two(setup);
  for (int i = 0; i < 8; ++i) ASSERT_EQ(two.b.receive(8), 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(two.a.send(8), 0);
  ASSERT_EQ(two.a.post(SendRequest(IBV_WR_SEND, {two.a.part(0, 8)}, 4).flagged(IBV_SEND_SIGNALED)),
            0);
  EXPECT_EQ(two.a.send(8), ENOMEM);
  const ibv_wc wc = two.a.sent();
  EXPECT_EQ(wc.wr_id, 4u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(two.a.send(8), 0);
  EXPECT_EQ(two.a.send(8), ENOMEM);
}

TEST(PostErrors, AFullReceiveQueueTakesNoMore) {
  Pair two;
  for (int i = 0; i < 64; ++i) ASSERT_EQ(two.b.receive(8), 0);
  ReceiveRequest one_more({two.b.part(0, 8)});
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_recv(two.b.qp(), one_more.get(), &bad), ENOMEM);
  EXPECT_EQ(bad, &one_more.wr);
}

TEST(PostErrors, InlineBytesMustBeMapped) {
  Pair two;
  SendRequest request(IBV_WR_SEND, {ibv_sge{4096, 8, 0}});
  request.flagged(IBV_SEND_INLINE);
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(post(two.a, request, &bad), EFAULT);
  EXPECT_EQ(bad, &request.wr);
  ASSERT_EQ(two.b.receive(8), 0);
  EXPECT_EQ(two.a.send(8), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
}

TEST(PostErrors, AQueuePairOfASharedQueueHasNoReceivesOfItsOwn) {
  EndSetup shared;
  shared.shared_receives = 8;
  End end(shared);
  ReceiveRequest request({end.part(0, 8)});
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_recv(end.qp(), request.get(), &bad), EINVAL);
  EXPECT_EQ(bad, &request.wr);
}

// Which operations a service has (IBTA table 9.4).
TEST(PostErrors, AnUnreliableConnectionNeitherReadsNorChanges) {
  EndSetup setup;
  setup.type = IBV_QPT_UC;
  Pair two(setup);
  for (const auto opcode :
       {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    EXPECT_EQ(two.a.post(SendRequest(opcode, {two.a.part(0, 8)}).at(two.b.place(0))), EINVAL);
  }
}

// States in which posts are taken.
TEST(PostErrors, SendsNeedReadyToSend) {
  End end;
  const ibv_qp_attr usual = end.usual();
  EXPECT_EQ(end.send(8), EINVAL);
  ASSERT_EQ(end.to_init(usual), 0);
  EXPECT_EQ(end.send(8), EINVAL);
  ASSERT_EQ(end.to_rtr(end.qp()->qp_num, usual), 0);
  EXPECT_EQ(end.send(8), EINVAL);
  ASSERT_EQ(end.to_rts(usual), 0);
  ASSERT_EQ(end.receive(8), 0);
  EXPECT_EQ(end.send(8), 0);
  EXPECT_EQ(end.sent().status, IBV_WC_SUCCESS);  // to itself
  ASSERT_EQ(end.to_reset(), 0);
  EXPECT_EQ(end.send(8), EINVAL);
}

TEST(PostErrors, ReceivesNeedInit) {
  End end;
  const ibv_qp_attr usual = end.usual();
  EXPECT_EQ(end.receive(8), EINVAL);
  ASSERT_EQ(end.to_init(usual), 0);
  EXPECT_EQ(end.receive(8, 5), 0);
  ASSERT_EQ(end.to_rtr(end.qp()->qp_num, usual), 0);
  ASSERT_EQ(end.to_rts(usual), 0);
  ASSERT_EQ(end.send(8), 0);
  EXPECT_EQ(end.received().wr_id, 5u);
}

}  // namespace
}  // namespace weft::verbs_conformance
