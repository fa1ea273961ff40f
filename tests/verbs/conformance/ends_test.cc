// SPDX-License-Identifier: BSD-2-Clause
// How does work end when the process of the target is killed, or stands still?
#include <signal.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "support/beside.h"

namespace weft::verbs_conformance {
namespace {

// Through shared memory. Over packets, kills.py does the same, and a process that stands still
// answers none.
class EndOfThePeer : public testing::TestWithParam<ibv_wr_opcode> {
 protected:
  void SetUp() override {
    const char* const links = std::getenv("FI_WEFT_LINKS");
    if (!kHasChildren) GTEST_SKIP() << "not under a sanitizer";
    if (links != nullptr && std::string_view(links) == "udp") GTEST_SKIP() << "over packets";
  }
  static SendRequest request(Beside& two, std::uint64_t id) {
    return SendRequest(GetParam(), {two.end().part(0, 8)}, id).at(two.place(0)).operands(1);
  }
};
class KilledTarget : public EndOfThePeer {};
class StoppedTarget : public EndOfThePeer {};
INSTANTIATE_TEST_SUITE_P(All, KilledTarget,
                         testing::Values(IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                         IBV_WR_ATOMIC_FETCH_AND_ADD));
INSTANTIATE_TEST_SUITE_P(All, StoppedTarget,
                         testing::Values(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                         IBV_WR_ATOMIC_FETCH_AND_ADD));

void waits(End& /*end*/, Board& board) {
  spins_until([&] { return board.over.load(); });
}

// The first request has the status, and all other work is flushed.
void expect_given_up(End& end, std::uint64_t first, std::uint64_t last) {
  ibv_wc wc = end.sent();
  EXPECT_EQ(wc.wr_id, first);
  EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
  for (std::uint64_t id = first + 1; id <= last; ++id) {
    wc = end.sent();
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  }
  EXPECT_EQ(end.received().status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(end.state(), IBV_QPS_ERR);
  EXPECT_TRUE(end.is_quiet());
}

TEST_P(KilledTarget, EndsALaterRequestAndFlushesTheRest) {
  Beside two(Where::kProcess, waits);
  ASSERT_EQ(two.end().receive(8), 0);
  two.signal(SIGKILL);
  ASSERT_EQ(two.end().post(request(two, 1)), 0);
  ASSERT_EQ(two.end().send(8, 2), 0);
  ASSERT_EQ(two.end().write(two.place(0), 8, 3), 0);
  expect_given_up(two.end(), 1, 3);
}

// The SEND waits for a receive when the target is killed.
TEST_P(KilledTarget, EndsRequestsThatWait) {
  Beside two(Where::kProcess, waits);
  ASSERT_EQ(two.end().write(two.place(0), 8, 1), 0);
  EXPECT_EQ(two.end().sent().status, IBV_WC_SUCCESS);
  ASSERT_EQ(two.end().receive(8), 0);
  ASSERT_EQ(two.end().send(8, 2), 0);
  ASSERT_EQ(two.end().post(request(two, 3)), 0);
  ASSERT_EQ(two.end().send(8, 4), 0);
  EXPECT_TRUE(two.end().is_quiet());
  two.signal(SIGKILL);
  expect_given_up(two.end(), 2, 4);
}

// Takes one message, whose bytes are all 7.
void takes(End& end, Board& /*board*/) {
  ASSERT_EQ(end.receive(ReceiveRequest({end.part(64, 8)})), 0);
  EXPECT_EQ(end.received().status, IBV_WC_SUCCESS);
  EXPECT_EQ(end.memory()[64 + 7], std::byte{7});
}

// As in a debugger: it need not take part in one-sided operations, and messages wait for it.
TEST_P(StoppedTarget, CompletesOneSidedWorkAndLetsMessagesWait) {
  Beside two(Where::kProcess, takes);
  End& end = two.end();
  two.signal(SIGSTOP);
  for (std::uint64_t id = 1; id <= 20; ++id) {
    ASSERT_EQ(end.post(request(two, id)), 0);
    const ibv_wc wc = end.sent();
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  }
  std::memset(end.memory() + 64, 7, 8);
  ASSERT_EQ(end.post({IBV_WR_SEND, {end.part(64, 8)}, 21}), 0);
  ASSERT_EQ(end.post(request(two, 22)), 0);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(end.is_quiet());
  EXPECT_EQ(end.state(), IBV_QPS_RTS);
  two.signal(SIGCONT);
  for (const std::uint64_t id : {21U, 22U}) {
    const ibv_wc wc = end.sent();
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  }
}

}  // namespace
}  // namespace weft::verbs_conformance
