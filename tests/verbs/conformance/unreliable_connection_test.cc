// SPDX-License-Identifier: BSD-2-Clause
// What does an unreliable connection promise, and what not? (IBTA 9.8.2)
#include <cstring>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

EndSetup unreliable() {
  EndSetup setup;
  setup.type = IBV_QPT_UC;
  return setup;
}

class Unreliable : public testing::Test {
 protected:
  Unreliable() : two(unreliable()) {}
  Pair two;
};

TEST_F(Unreliable, ASendWithoutAReceiveIsLost) {
  ASSERT_EQ(two.a.send(64, 1), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  EXPECT_TRUE(two.b.is_quiet());
  ASSERT_EQ(two.b.receive(64, 2), 0);
  ASSERT_EQ(two.a.send(64, 3), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  EXPECT_EQ(two.b.received().wr_id, 2u);
}

TEST_F(Unreliable, ASendLongerThanItsReceiveEndsTheReceiverAlone) {
  ASSERT_EQ(two.b.receive(63, 1), 0);
  ASSERT_EQ(two.b.receive(64, 2), 0);
  ASSERT_EQ(two.a.send(64), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  EXPECT_EQ(two.b.received().status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(two.b.received().status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(two.b.state(), IBV_QPS_ERR);
  EXPECT_EQ(two.a.state(), IBV_QPS_RTS);
}

TEST_F(Unreliable, ARefusedWriteIsDroppedAndTheNextOneArrives) {
  std::memset(two.a.memory(), 0x3C, 4096);
  ASSERT_EQ(two.a.write({two.b.place(0).address, 1}, 4096), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  EXPECT_TRUE(two.b.is_quiet());
  EXPECT_EQ(two.b.memory()[0], std::byte{0});
  ASSERT_EQ(two.b.receive(0, 4), 0);
  ASSERT_EQ(
      two.a.post(SendRequest(IBV_WR_RDMA_WRITE_WITH_IMM, {two.a.part(0, 4096)}).at(two.b.place(0))),
      0);
  const ibv_wc wc = two.b.received();
  EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(wc.byte_len, 4096u);
  EXPECT_EQ(two.b.memory()[4095], std::byte{0x3C});
}

TEST_F(Unreliable, AnErrorOfTheSendQueueLeavesTheReceiveQueueAlone) {
  ASSERT_EQ(two.a.receive(64, 9), 0);
  SendRequest bad(IBV_WR_SEND, {two.a.part(0, 8)});
  bad.sges[0].lkey += 1;
  ASSERT_EQ(two.a.send(64, 1), 0);
  ASSERT_EQ(two.a.post(bad), 0);
  ASSERT_EQ(two.a.send(64, 3), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  EXPECT_EQ(two.a.sent().status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(two.a.sent().status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(two.a.state(), IBV_QPS_SQE);
  ASSERT_EQ(two.b.send(64), 0);
  EXPECT_EQ(two.a.received().wr_id, 9u);
  ibv_qp_attr again{};
  again.qp_state = IBV_QPS_RTS;
  ASSERT_EQ(ibv_modify_qp(two.a.qp(), &again, IBV_QP_STATE), 0);
  ASSERT_EQ(two.b.receive(64, 5), 0);
  ASSERT_EQ(two.a.send(64), 0);
  EXPECT_EQ(two.b.received().wr_id, 5u);
}

TEST_F(Unreliable, AMessageThatBreaksOffLeavesItsReceiveToTheNext) {
  ASSERT_EQ(two.b.receive(1 << 16, 1), 0);
  SendRequest broken(IBV_WR_SEND, {two.a.part(0, 8192), two.a.part(0, 8192)});
  broken.sges[1].lkey += 1;
  ASSERT_EQ(two.a.post(broken), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_LOC_PROT_ERR);
  EXPECT_TRUE(two.b.is_quiet());
  ibv_qp_attr again{};
  again.qp_state = IBV_QPS_RTS;
  ASSERT_EQ(two.a.state(), IBV_QPS_SQE);
  ASSERT_EQ(ibv_modify_qp(two.a.qp(), &again, IBV_QP_STATE), 0);
  ASSERT_EQ(two.a.send(100), 0);
  const ibv_wc wc = two.b.received();
  EXPECT_EQ(wc.wr_id, 1u);
  EXPECT_EQ(wc.byte_len, 100u);
}

}  // namespace
}  // namespace weft::verbs_conformance
