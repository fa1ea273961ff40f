// SPDX-License-Identifier: BSD-2-Clause
// What becomes of the flows of a process when its forked child closes what it has inherited?
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_support.h"

namespace weft::udp {
namespace {

using namespace testing;

// Closes both endpoints in a child, and waits for its end.
void close_in_child(Peer& a, Peer& b) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    a.flows.clear();
    b.flows.clear();
    a.close();
    b.close();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
}

TEST(RdEndpointFork, AChildThatClosesWhatItHasInheritedEndsNoFlowOfItsParent) {
  Peer a;
  Peer b;
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  for (std::uint64_t round = 1; round <= 3; ++round) {
    Bytes waiting = pattern(100, round);
    Bytes large = pattern(300'000, round);  // an offer, which the child has not finished either
    const std::size_t before = b.log.messages.size();
    udp::testing::send(a, a, *flow, 2 * round, waiting);  // b does not look
    udp::testing::send(a, a, *flow, 2 * round + 1, large);
    close_in_child(a, b);
    ASSERT_TRUE(until({&a, &b},
                      [&] {
                        const auto& messages = b.log.messages;
                        return messages.size() == before + 2 && messages.back().error == 0 &&
                               a.ends.has(2 * round + 1);
                      }))
        << "round " << round;
    EXPECT_TRUE(b.log.messages[before].bytes == waiting);
    EXPECT_TRUE(b.log.messages[before + 1].bytes == large);
    EXPECT_TRUE(b.log.closed.empty());
    EXPECT_EQ(flow->check_peer(a.ends), link::PeerState::kAlive);
  }
  part(a, b);
}

// What has arrived for the parent, the child must not take.
TEST(RdEndpointFork, AChildThatGoesOnWithAnInheritedStationSendsAndTakesNothing) {
  Peer a;
  Peer b;
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  Bytes bytes = pattern(100, 1);
  udp::testing::send(a, a, *flow, 1, bytes);
  const std::uint64_t sent = a.sent();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Bytes own = pattern(100, 2);
    udp::testing::send(a, a, *flow, 2, own);
    for (int i = 0; i < 100; ++i) {
      a.poll();
      b.poll();
    }
    ::_exit(b.log.messages.empty() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(until({&a, &b}, [&] { return !b.log.messages.empty(); }));
  EXPECT_TRUE(b.log.messages[0].bytes == bytes);
  EXPECT_LE(a.sent(), sent + 8) << "nothing had to be sent again";
  part(a, b);
}

}  // namespace
}  // namespace weft::udp
