// SPDX-License-Identifier: BSD-2-Clause
// Does a transmit context hold what is in flight and what the program has not taken, and no more?
#include "messaging/transmit_context.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace weft::messaging {
namespace {

class HeldOperations : public ::testing::Test {
 protected:
  void report(TransmitContext& of) {
    queue_.push([&](device::Completion& completion) {
      of.report();
      completion = {};
    });
  }
  void take(std::size_t count) {
    device::CompletionQueue::Front front{};
    EXPECT_EQ(queue_.pop(count, front, [](const device::Completion&) {}), count);
  }

  device::CompletionQueue queue_{1000, true, device::WaitKind::kNone};
  TransmitContext context_{3, &queue_};
};

TEST_F(HeldOperations, AreThoseInFlight) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(context_.full(true));
    context_.begin();
  }
  EXPECT_TRUE(context_.full(true));
  EXPECT_EQ(context_.room(), 0u);
  context_.end();
  EXPECT_EQ(context_.room(), 1u);
  EXPECT_FALSE(context_.full(true));
}

TEST_F(HeldOperations, AreThoseReportedUntilTheyAreTaken) {
  context_.begin();
  report(context_);
  report(context_);
  EXPECT_TRUE(context_.full(true));
  take(1);
  EXPECT_EQ(context_.room(), 1u);
  EXPECT_FALSE(context_.full(true));
  context_.end();
  take(1);
  EXPECT_EQ(context_.room(), 3u);
}

TEST_F(HeldOperations, AreNotThoseOfOtherContexts) {
  TransmitContext other(100, &queue_);
  for (int i = 0; i < 50; ++i) report(other);
  report(context_);
  for (int i = 0; i < 50; ++i) report(other);
  EXPECT_EQ(context_.room(), 2u);
  EXPECT_TRUE(other.full(true));
  take(50);
  EXPECT_EQ(context_.room(), 2u);
  EXPECT_EQ(other.room(), 50u);
  take(1);
  EXPECT_EQ(context_.room(), 3u);
}

TEST_F(HeldOperations, MayBeAnyNumberInTurn) {
  TransmitContext large(300, &queue_);
  std::size_t waiting = 0;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 100; ++i) report(large);
    waiting += 100;
    EXPECT_EQ(large.room(), 300 - std::min<std::size_t>(waiting, 300));
    const std::size_t most = waiting > 250 ? 240 : 50;
    take(most);
    waiting -= most;
    EXPECT_EQ(large.room(), 300 - std::min<std::size_t>(waiting, 300));
  }
}

TEST_F(HeldOperations, LeaveNoMoreRoomThanTheQueueHas) {
  device::CompletionQueue queue(2, true, device::WaitKind::kNone);
  TransmitContext context(3, &queue);
  EXPECT_EQ(context.room(), 2u);
  queue.push([](device::Completion& completion) { completion = {}; });
  EXPECT_EQ(context.room(), 1u);
}

TEST_F(HeldOperations, WithoutAQueueAreThoseInFlightOnly) {
  TransmitContext context(1, nullptr);
  EXPECT_EQ(context.room(), 1u);
  context.begin();
  EXPECT_TRUE(context.full(true));
  context.end();
  EXPECT_FALSE(context.full(true));
}

TEST_F(HeldOperations, ThatAreNotReportedDoNotWaitForTheProgram) {
  for (int i = 0; i < 3; ++i) report(context_);
  EXPECT_TRUE(context_.full(true));
  EXPECT_FALSE(context_.full(false));
  for (int i = 0; i < 3; ++i) context_.begin();
  EXPECT_TRUE(context_.full(false));
}

}  // namespace
}  // namespace weft::messaging
