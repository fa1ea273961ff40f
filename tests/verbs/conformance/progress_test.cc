// SPDX-License-Identifier: BSD-2-Clause
// Does posted work proceed while the program polls nothing?
#include <atomic>
#include <chrono>
#include <thread>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

constexpr std::chrono::seconds kHangs(20);
constexpr int kMany = 30;

bool becomes(std::byte& place, std::byte value) {
  const auto end = std::chrono::steady_clock::now() + kHangs;
  while (std::atomic_ref(place).load() != value) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// Requests of a stream may wait for others to share a system call with them.
TEST(Progress, WritesThatArePostedOneByOneArriveWithoutAPoll) {
  Pair two;
  for (int round = 1; round <= 20; ++round) {
    const auto value = static_cast<std::byte>(round);
    two.a.memory()[0] = value;
    two.a.drive();
    for (int i = 0; i < kMany; ++i) {
      ASSERT_EQ(two.a.write(two.b.place(static_cast<std::size_t>(i)), 1), 0);
    }
    ASSERT_TRUE(becomes(two.b.memory()[kMany - 1], value)) << round;
    for (int i = 0; i < kMany; ++i) EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  }
}

TEST(Progress, MessagesThatArePostedOneByOneArriveWhileTheReceiverPollsAlone) {
  Pair two;
  two.a.partner_with(two.a);
  two.b.partner_with(two.b);
  for (int round = 1; round <= 20; ++round) {
    for (int i = 0; i < kMany; ++i) ASSERT_EQ(two.b.receive(8), 0);
    two.a.drive();
    for (int i = 0; i < kMany; ++i) ASSERT_EQ(two.a.send(8), 0);
    for (int i = 0; i < kMany; ++i) EXPECT_EQ(two.b.received().status, IBV_WC_SUCCESS);
    for (int i = 0; i < kMany; ++i) EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  }
}

}  // namespace
}  // namespace weft::verbs_conformance
