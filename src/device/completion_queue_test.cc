// SPDX-License-Identifier: BSD-2-Clause
// Do completions leave the queue in order, each once, and errors by their own door?
#include "device/completion_queue.h"

#include <gtest/gtest.h>

#include <thread>

namespace weft::device {
namespace {

using work::CompletionStatus;
using Front = CompletionQueue::Front;

Completion success(std::uint64_t number) {
  Completion completion;
  completion.data = number;
  return completion;
}

Completion failure(std::uint64_t number, CompletionStatus status) {
  Completion completion = success(number);
  completion.status = status;
  return completion;
}

void push(CompletionQueue& queue, const Completion& completion) {
  queue.push([&](Completion& entry) { entry = completion; });
}

// The numbers of up to `count` completions that were taken.
std::vector<std::uint64_t> take(CompletionQueue& queue, std::size_t count, Front& front) {
  std::vector<std::uint64_t> taken;
  const std::size_t got =
      queue.pop(count, front, [&](const Completion& entry) { taken.push_back(entry.data); });
  EXPECT_EQ(got, taken.size());
  return taken;
}

TEST(CompletionQueue, AnEmptyOneGivesNothing) {
  CompletionQueue queue(16, true, WaitKind::kNone);
  Front front = Front::kError;
  EXPECT_TRUE(take(queue, 5, front).empty());
  EXPECT_EQ(front, Front::kNothing);
  Completion error;
  EXPECT_FALSE(queue.pop_error(error));
  EXPECT_TRUE(queue.empty());
}

TEST(CompletionQueue, CompletionsLeaveInTheOrderOfTheirArrival) {
  CompletionQueue queue(16, true, WaitKind::kNone);
  for (std::uint64_t i = 0; i < 5; ++i) push(queue, success(i));
  Front front{};
  EXPECT_EQ(take(queue, 2, front), (std::vector<std::uint64_t>{0, 1}));
  EXPECT_EQ(queue.size(), 3U);
  EXPECT_EQ(take(queue, 9, front), (std::vector<std::uint64_t>{2, 3, 4}));
  EXPECT_TRUE(queue.empty());
}

TEST(CompletionQueue, TakingNoneSaysWhatStandsAtTheFront) {
  CompletionQueue queue(16, true, WaitKind::kNone);
  push(queue, success(1));
  Front front{};
  EXPECT_TRUE(take(queue, 0, front).empty());
  EXPECT_EQ(front, Front::kCompletion);
}

TEST(CompletionQueue, EveryFieldOfACompletionArrives) {
  CompletionQueue queue(16, true, WaitKind::kNone);
  int buffer = 0;
  push(queue, {&queue, kTagged | kReceive, 7, 8, 9, 10, &buffer, CompletionStatus::kLocalLength, 11,
               Completion::kMaxVendor});
  Completion out;
  ASSERT_TRUE(queue.pop_error(out));
  EXPECT_EQ(out.context, &queue);
  EXPECT_EQ(out.flags, kTagged | kReceive);
  EXPECT_EQ(out.length, 7U);
  EXPECT_EQ(out.buffer, &buffer);
  EXPECT_EQ(out.data, 8U);
  EXPECT_EQ(out.tag, 9U);
  EXPECT_EQ(out.source, 10U);
  EXPECT_EQ(out.status, CompletionStatus::kLocalLength);
  EXPECT_EQ(out.reason, 11);
  EXPECT_EQ(out.vendor, Completion::kMaxVendor);
}

TEST(CompletionQueue, AnErrorStopsTakingUntilItIsTakenItself) {
  CompletionQueue queue(16, true, WaitKind::kNone);
  push(queue, success(1));
  push(queue, failure(2, CompletionStatus::kCancelled));
  push(queue, success(3));
  Front front{};
  Completion error;
  EXPECT_TRUE(queue.has_error());
  EXPECT_FALSE(queue.pop_error(error)) << "the error is not at the front yet";
  EXPECT_EQ(take(queue, 9, front), (std::vector<std::uint64_t>{1}));
  EXPECT_TRUE(take(queue, 9, front).empty());
  EXPECT_EQ(front, Front::kError);
  ASSERT_TRUE(queue.pop_error(error));
  EXPECT_EQ(error.data, 2U);
  EXPECT_EQ(error.status, CompletionStatus::kCancelled);
  EXPECT_FALSE(queue.has_error());
  EXPECT_FALSE(queue.pop_error(error));
  EXPECT_EQ(take(queue, 9, front), (std::vector<std::uint64_t>{3}));
}

TEST(CompletionQueue, ItIsFullFromItsSizeOnButLosesNothingBeyond) {
  CompletionQueue queue(20, true, WaitKind::kNone);
  for (std::uint64_t i = 0; i < 19; ++i) push(queue, success(i));
  EXPECT_FALSE(queue.full());
  push(queue, success(19));
  EXPECT_TRUE(queue.full());
  for (std::uint64_t i = 20; i < 1000; ++i) push(queue, success(i));
  Front front{};
  const auto taken = take(queue, 2000, front);
  ASSERT_EQ(taken.size(), 1000U);
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(taken[i], i);
  EXPECT_FALSE(queue.full());
}

TEST(CompletionQueue, GrowingKeepsTheOrderWhereverTheFrontStands) {
  for (std::uint64_t shift = 0; shift <= 16; ++shift) {
    CompletionQueue queue(16, true, WaitKind::kNone);
    Front front{};
    for (std::uint64_t i = 0; i < shift; ++i) push(queue, success(0));
    take(queue, shift, front);
    for (std::uint64_t i = 0; i < 100; ++i)
      push(queue, i == 50 ? failure(i, CompletionStatus::kGeneral) : success(i));
    EXPECT_EQ(take(queue, 200, front).size(), 50U) << shift;
    Completion error;
    ASSERT_TRUE(queue.pop_error(error)) << shift;
    EXPECT_EQ(error.data, 50U);
    const auto rest = take(queue, 200, front);
    ASSERT_EQ(rest.size(), 49U);
    for (std::uint64_t i = 0; i < rest.size(); ++i) EXPECT_EQ(rest[i], 51 + i);
  }
}

TEST(CompletionQueue, SmallestAndLargestSizesWork) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{65535}}) {
    CompletionQueue queue(size, true, WaitKind::kNone);
    for (std::uint64_t i = 0; i < size; ++i) {
      EXPECT_FALSE(queue.full());
      push(queue, success(i));
    }
    EXPECT_TRUE(queue.full());
  }
}

TEST(CompletionQueue, WithoutALockOneThreadUsesItAllTheSame) {
  CompletionQueue queue(16, false, WaitKind::kNone);
  for (std::uint64_t i = 0; i < 100; ++i) push(queue, success(i));
  Front front{};
  EXPECT_EQ(take(queue, 100, front).size(), 100U);
}

TEST(CompletionQueue, TwoThreadsThatPushAndTwoThatTakeLoseAndDoubleNothing) {
  constexpr std::uint64_t kEach = 20000;
  CompletionQueue queue(16, true, WaitKind::kNone);
  std::vector<std::atomic<int>> seen(2 * kEach);
  std::atomic<std::uint64_t> total{0};
  std::atomic<int> disorder{0};
  const auto add = [&](std::uint64_t first) {
    for (std::uint64_t i = 0; i < kEach; ++i) {
      push(queue,
           i % 100 == 99 ? failure(first + i, CompletionStatus::kGeneral) : success(first + i));
    }
  };
  const auto pull = [&] {
    std::uint64_t last[2] = {0, 0};
    const auto count = [&](const Completion& entry) {
      ++seen[entry.data];
      ++total;
      auto& newest = last[entry.data / kEach];
      if (entry.data < newest) ++disorder;
      newest = entry.data;
    };
    while (total < 2 * kEach) {
      Front front{};
      Completion error;
      if (queue.pop(7, front, count) != 0) continue;
      if (queue.pop_error(error)) {
        count(error);
      } else {
        std::this_thread::yield();
      }
    }
  };
  std::thread threads[] = {std::thread(add, 0), std::thread(add, kEach), std::thread(pull),
                           std::thread(pull)};
  for (std::thread& thread : threads) thread.join();
  for (const auto& times : seen) ASSERT_EQ(times.load(), 1);
  EXPECT_EQ(disorder.load(), 0);
  EXPECT_FALSE(queue.has_error());
}

}  // namespace
}  // namespace weft::device
