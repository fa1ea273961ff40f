// SPDX-License-Identifier: BSD-2-Clause
// What becomes of outstanding work when a queue pair enters ERR or RESET, or ends? (IBTA 10.3.1)
#include <cerrno>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

// The peer has no receive, so all of it waits.
void post_ten(End& end) {
  for (std::uint64_t id = 0; id < 10; ++id) {
    ASSERT_EQ(end.send(8, id), 0);
    ASSERT_EQ(end.receive(8, 100 + id), 0);
  }
}

void expect_flushed(End& end, std::uint64_t count) {
  for (std::uint64_t id = 0; id < count; ++id) {
    const ibv_wc sent = end.sent();
    EXPECT_EQ(sent.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(sent.wr_id, id);
    EXPECT_EQ(sent.qp_num, end.qp()->qp_num);
    const ibv_wc received = end.received();
    EXPECT_EQ(received.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(received.wr_id, 100 + id);
    EXPECT_EQ(received.qp_num, end.qp()->qp_num);
  }
  EXPECT_TRUE(end.is_quiet());
}

class Flush : public testing::TestWithParam<ibv_qp_type> {
 protected:
  Flush() : two(setup()) {}
  static EndSetup setup() {
    EndSetup setup;
    setup.type = GetParam();
    return setup;
  }
  Pair two;
};
INSTANTIATE_TEST_SUITE_P(Reliable, Flush, testing::Values(IBV_QPT_RC));

TEST_P(Flush, EndsBothQueuesInTheirOrder) {
  post_ten(two.a);
  ASSERT_EQ(two.a.to_error(), 0);
  expect_flushed(two.a, 10);
}

TEST_P(Flush, EndsUnsignaledWorkWithACompletion) {
  EndSetup unsignaled = setup();
  unsignaled.all_signaled = false;
  Pair quiet(unsignaled);
  post_ten(quiet.a);
  ASSERT_EQ(quiet.a.to_error(), 0);
  expect_flushed(quiet.a, 10);
}

TEST_P(Flush, EndsWhatIsPostedLater) {
  ASSERT_EQ(two.a.to_error(), 0);
  post_ten(two.a);
  expect_flushed(two.a, 10);
}

TEST_P(Flush, OnceMoreChangesNothing) {
  post_ten(two.a);
  ASSERT_EQ(two.a.to_error(), 0);
  ASSERT_EQ(two.a.to_error(), 0);
  expect_flushed(two.a, 10);
}

TEST_P(Flush, LetsThePeerFindOutByItsRetries) {
  ibv_qp_attr brief = usual_pair_attributes();
  brief.timeout = 8;
  brief.retry_cnt = 1;
  Pair apart(setup(), brief, brief);
  ASSERT_EQ(apart.b.to_error(), 0);
  ASSERT_EQ(apart.a.send(8, 1), 0);
  ASSERT_EQ(apart.a.send(8, 2), 0);
  EXPECT_EQ(apart.a.sent().status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(apart.a.sent().status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(apart.a.state(), IBV_QPS_ERR);
}

TEST(Flushed, AreTheReceivesOfAnEndInInit) {
  End end;
  ASSERT_EQ(end.to_init(end.usual()), 0);
  ASSERT_EQ(end.receive(8, 3), 0);
  ASSERT_EQ(end.to_error(), 0);
  const ibv_wc wc = end.received();
  EXPECT_EQ(wc.wr_id, 3u);
  EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
}

// A message of many packets has taken a receive, which must not be lost.
TEST(Flushed, IsTheReceiveOfAMessageThatHasBegun) {
  Pair two;
  ASSERT_EQ(two.b.receive(1 << 20, 1), 0);
  ASSERT_EQ(two.b.receive(8, 2), 0);
  SendRequest broken(IBV_WR_SEND, {two.a.part(0, 8192), two.a.part(0, 8192)});
  broken.sges[1].lkey += 1;
  ASSERT_EQ(two.a.post(broken), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_LOC_PROT_ERR);
  EXPECT_TRUE(two.b.is_quiet());
  ASSERT_EQ(two.b.to_error(), 0);
  for (std::uint64_t id = 1; id <= 2; ++id) {
    const ibv_wc wc = two.b.received();
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  }
}

TEST(Reset, DropsWorkAndCompletionsOfTheQueuePairAlone) {
  Pair two;
  ASSERT_EQ(two.b.receive(8, 1), 0);
  ASSERT_EQ(two.a.send(8, 1), 0);
  EXPECT_EQ(two.b.received().wr_id, 1u);
  two.b.drive();
  post_ten(two.a);
  ASSERT_EQ(two.a.to_reset(), 0);
  EXPECT_TRUE(two.a.is_quiet());
  two.a.connect(two.b.qp()->qp_num);
  ASSERT_EQ(two.b.to_reset(), 0);
  two.b.connect(two.a.qp()->qp_num);
  ASSERT_EQ(two.b.receive(8, 5), 0);
  ASSERT_EQ(two.a.send(8, 6), 0);
  EXPECT_EQ(two.a.sent().wr_id, 6u);
  EXPECT_EQ(two.b.received().wr_id, 5u);
}

TEST(Reset, AlsoLeadsOutOfError) {
  Pair two;
  SendRequest bad(IBV_WR_SEND, {two.a.part(0, 8)});
  bad.sges[0].lkey += 1;
  ASSERT_EQ(two.a.post(bad), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_LOC_PROT_ERR);
  for (End* const end : {&two.a, &two.b}) ASSERT_EQ(end->to_reset(), 0);
  two.a.connect(two.b.qp()->qp_num);
  two.b.connect(two.a.qp()->qp_num);
  ASSERT_EQ(two.b.receive(8), 0);
  ASSERT_EQ(two.a.send(8), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
}

TEST(Destruction, TakesTheCompletionsOfTheQueuePairAlong) {
  Pair two;
  post_ten(two.a);
  ASSERT_EQ(two.a.to_error(), 0);
  two.a.destroy_qp();
  EXPECT_TRUE(two.a.is_quiet());
}

}  // namespace
}  // namespace weft::verbs_conformance
