// SPDX-License-Identifier: BSD-2-Clause
// Do completions leave the queue in order, each once, errors by their own door, and are they told?
#include "device/completion_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace weft::device {
namespace {

using work::CompletionStatus;
using Front = CompletionQueue::Front;
using Full = CompletionQueue::Full;

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

bool push(CompletionQueue& queue, const Completion& completion) {
  return queue.push([&](Completion& entry) { entry = completion; });
}

std::unique_ptr<EventChannel> open_channel() {
  auto channel = EventChannel::open();
  EXPECT_TRUE(channel.ok());
  return std::move(channel).value();
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

TEST(CompletionQueue, CountsTheEntriesThatCameAndThoseThatWait) {
  CompletionQueue queue(16, true, WaitKind::kNone);
  for (std::uint64_t i = 0; i < 5; ++i) push(queue, success(i));
  push(queue, failure(5, CompletionStatus::kFlushed));
  EXPECT_EQ(queue.fill().added, 6U);
  EXPECT_EQ(queue.fill().queued, 6U);
  EXPECT_EQ(queue.errors(), 1U);
  Front front{};
  take(queue, 2, front);
  EXPECT_EQ(queue.fill().added, 6U);
  EXPECT_EQ(queue.fill().queued, 4U);
}

// Never more than this thread's entries that are under way: `queued` is of one moment.
TEST(CompletionQueue, HasNoMoreEntriesThanThereWereWhileTheyAreCounted) {
  CompletionQueue queue(16, true, WaitKind::kNone);
  std::atomic<bool> ended{false};
  std::thread counting([&] {
    for (std::size_t added = 0; !ended;) {
      const CompletionQueue::Fill fill = queue.fill();
      EXPECT_GE(fill.added, added);
      EXPECT_LE(fill.queued, 1U);
      added = fill.added;
    }
  });
  Front front{};
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    push(queue, success(i));
    take(queue, 1, front);
  }
  ended = true;
  counting.join();
  EXPECT_EQ(queue.fill().added, 20'000U);
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

TEST(CompletionQueue, OneThatMayOverrunRefusesTheEntryBeyondItsSizeAndAllLaterOnes) {
  for (const std::uint64_t size : {1, 16, 20, 5000}) {
    CompletionQueue queue(size, true, WaitKind::kNone, Full::kOverrun);
    for (std::uint64_t i = 0; i < size; ++i) EXPECT_TRUE(push(queue, success(i)));
    EXPECT_FALSE(push(queue, success(size)));
    EXPECT_EQ(queue.size(), size);
    Front front{};
    const auto taken = take(queue, 2 * size, front);
    ASSERT_EQ(taken.size(), size) << "what was accepted is there";
    for (std::uint64_t i = 0; i < size; ++i) EXPECT_EQ(taken[i], i);
    EXPECT_FALSE(push(queue, success(0))) << "it is lost, although there is room";
    EXPECT_TRUE(queue.empty());
  }
}

TEST(CompletionQueue, AnOverrunIsToldOnce) {
  const auto channel = open_channel();
  CompletionQueue queue(1, true, WaitKind::kNone, Full::kOverrun);
  int handle = 0;
  queue.report_overrun(*channel, &handle);
  push(queue, success(1));
  EXPECT_FALSE(channel->take());
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(push(queue, success(2)));
  const auto channel_event = channel->take();
  ASSERT_TRUE(channel_event);
  EXPECT_EQ(channel_event->cause, Cause::kOverrun);
  EXPECT_EQ(channel_event->object, &handle);
  EXPECT_FALSE(channel->take());
}

TEST(CompletionQueue, ResizingChangesWhenItIsFullAndLosesNothing) {
  for (const Full when_full : {Full::kGrow, Full::kOverrun}) {
    CompletionQueue queue(4, true, WaitKind::kNone, when_full);
    for (std::uint64_t i = 0; i < 4; ++i) push(queue, success(i));
    EXPECT_TRUE(queue.full());
    ASSERT_TRUE(queue.resize(100).ok());
    EXPECT_EQ(queue.room(), 96U);
    for (std::uint64_t i = 4; i < 100; ++i) EXPECT_TRUE(push(queue, success(i)));
    EXPECT_TRUE(queue.full());
    Front front{};
    EXPECT_EQ(take(queue, 90, front).size(), 90U);
    ASSERT_TRUE(queue.resize(10).ok());
    EXPECT_TRUE(queue.full());
    EXPECT_EQ(push(queue, success(100)), when_full == Full::kGrow);
    EXPECT_EQ(take(queue, 10, front),
              (std::vector<std::uint64_t>{90, 91, 92, 93, 94, 95, 96, 97, 98, 99}));
  }
}

TEST(CompletionQueue, ItIsNotResizedToLessThanItHoldsOrToNothing) {
  CompletionQueue queue(4, true, WaitKind::kNone, Full::kOverrun);
  for (std::uint64_t i = 0; i < 3; ++i) push(queue, success(i));
  EXPECT_EQ(queue.resize(2).error().code, EINVAL);
  EXPECT_EQ(queue.resize(0).error().code, EINVAL);
  EXPECT_EQ(queue.room(), 1U) << "it is as it was";
  EXPECT_TRUE(queue.resize(3).ok());
}

TEST(CompletionQueue, PurgingRemovesTheEntriesOfOneOwnerAndKeepsTheOthersInOrder) {
  int owners[2] = {};
  for (std::uint64_t shift = 0; shift <= 16; ++shift) {
    CompletionQueue queue(16, true, WaitKind::kNone);
    Front front{};
    for (std::uint64_t i = 0; i < shift; ++i) push(queue, success(0));
    take(queue, shift, front);
    for (std::uint64_t i = 0; i < 30; ++i) {
      Completion completion = i % 10 == 1 ? failure(i, CompletionStatus::kFlushed) : success(i);
      completion.owner = &owners[i % 2];
      push(queue, completion);
    }
    EXPECT_TRUE(queue.has_error());
    queue.purge(&owners[1]);
    EXPECT_FALSE(queue.has_error()) << "the errors were of that owner";
    const auto rest = take(queue, 100, front);
    ASSERT_EQ(rest.size(), 15U);
    for (std::uint64_t i = 0; i < rest.size(); ++i) EXPECT_EQ(rest[i], 2 * i);
    push(queue, success(5));
    EXPECT_EQ(take(queue, 2, front), std::vector<std::uint64_t>{5});
  }
}

TEST(CompletionQueue, AnArmedOneRaisesOneEventWithItsNextEntry) {
  const auto channel = open_channel();
  CompletionQueue queue(16, true, WaitKind::kNone);
  int handle = 0;
  push(queue, success(1));
  queue.arm(false, *channel, &handle);
  EXPECT_FALSE(channel->take()) << "what was queued before is for the caller to find";
  push(queue, success(2));
  push(queue, success(3));
  const auto channel_event = channel->take();
  ASSERT_TRUE(channel_event);
  EXPECT_EQ(channel_event->cause, Cause::kCompletion);
  EXPECT_EQ(channel_event->object, &handle);
  EXPECT_FALSE(channel->take()) << "one arming, one event";
  queue.arm(false, *channel, &handle);
  push(queue, success(4));
  EXPECT_TRUE(channel->take());
}

TEST(CompletionQueue, ArmedForSolicitedEntriesItWaitsForOneOrForAnError) {
  const auto channel = open_channel();
  CompletionQueue queue(16, true, WaitKind::kNone);
  queue.arm(true, *channel, nullptr);
  push(queue, success(1));
  EXPECT_FALSE(channel->take());
  Completion solicited = success(2);
  solicited.flags = kReceive | kSolicited;
  push(queue, solicited);
  EXPECT_TRUE(channel->take());
  queue.arm(true, *channel, nullptr);
  push(queue, failure(3, CompletionStatus::kFlushed));
  EXPECT_TRUE(channel->take());
}

TEST(CompletionQueue, ArmedForAllEntriesItStaysSo) {
  const auto channel = open_channel();
  CompletionQueue queue(16, true, WaitKind::kNone);
  queue.arm(false, *channel, nullptr);
  queue.arm(true, *channel, nullptr);
  push(queue, success(1));
  EXPECT_TRUE(channel->take());
}

TEST(CompletionQueue, ItsEventsGoWithItAndWithItsChannel) {
  const auto left = open_channel();
  const auto right = open_channel();
  {
    CompletionQueue queue(1, true, WaitKind::kNone, Full::kOverrun);
    queue.report_overrun(*right, nullptr);
    queue.arm(false, *left, nullptr);
    push(queue, success(1));
    queue.arm(false, *right, nullptr);
    EXPECT_FALSE(left->take()) << "it reports to another channel now";
    push(queue, success(2));
  }
  EXPECT_FALSE(right->take());
  EXPECT_FALSE(os::wait_readable(right->fd(), std::chrono::milliseconds(0)));
}

TEST(CompletionQueue, BetweenArmingAndLookingNoEntryIsMissed) {
  constexpr std::uint64_t kEach = 20000;
  const auto channel = open_channel();
  CompletionQueue queue(16, true, WaitKind::kNone);
  const auto add = [&] {
    for (std::uint64_t i = 0; i < kEach; ++i) {
      push(queue, success(i));
      if (i % 16 == 0) std::this_thread::yield();
    }
  };
  std::thread threads[] = {std::thread(add), std::thread(add), std::thread(add)};
  std::uint64_t taken = 0;
  Front front{};
  const auto drain = [&] { return queue.pop(7, front, [&](const Completion&) { ++taken; }) != 0; };
  while (taken < 3 * kEach) {
    queue.arm(false, *channel, &queue);
    if (drain()) continue;
    ASSERT_TRUE(os::wait_readable(channel->fd(), std::chrono::seconds(60))) << taken;
    while (channel->take()) {
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace weft::device
