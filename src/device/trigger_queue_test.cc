// SPDX-License-Identifier: BSD-2-Clause
// Is every operation started once, in order, as soon as its counter has come to its threshold?
#include "device/trigger_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <thread>

namespace weft::device {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kForever{-1};

class TriggerQueueTest : public testing::Test {
 protected:
  // An operation that does something, after it could not be started for a number of times.
  class Step final : public Deferred {
   public:
    Step(std::function<void()> action, int refusals)
        : action_(std::move(action)), refusals_(refusals) {}
    bool start() override {
      if (refusals_-- > 0) return false;
      action_();
      return true;
    }

    void fail(int) override {}

   private:
    const std::function<void()> action_;
    int refusals_;
  };

  static std::unique_ptr<Deferred> step(std::function<void()> action, int refusals = 0) {
    return std::make_unique<Step>(std::move(action), refusals);
  }
  // Records that it was started.
  std::unique_ptr<Deferred> mark(int number, int refusals = 0) {
    return step([this, number] { started_.push_back(number); }, refusals);
  }
  Waiting when(Counter& counter, std::uint64_t threshold, const void* owner = nullptr) const {
    return {&counter, threshold, false, owner, nullptr};
  }
  // What was started since the last look.
  std::vector<int> started() { return std::exchange(started_, {}); }
  std::vector<int> after_progress() {
    queue_->progress();
    return started();
  }

  const std::unique_ptr<TriggerQueue> queue_ = TriggerQueue::open(true).value();
  Counter counter_{true, WaitKind::kNone};
  std::vector<int> started_;
};

using Marks = std::vector<int>;

TEST_F(TriggerQueueTest, AnOperationStartsWhenItsCounterHasComeToTheThreshold) {
  queue_->submit(when(counter_, 3), mark(1));
  counter_.add(2);
  EXPECT_EQ(after_progress(), Marks{});
  counter_.add(1);
  EXPECT_EQ(after_progress(), Marks{1});
  counter_.add(1);
  EXPECT_EQ(after_progress(), Marks{}) << "started twice";
}

TEST_F(TriggerQueueTest, AConditionThatHoldsStartsTheOperationAtOnce) {
  counter_.add(3);
  queue_->submit(when(counter_, 3), mark(1));
  queue_->submit(when(counter_, 0), mark(2));
  EXPECT_EQ(started(), (Marks{1, 2}));
}

TEST_F(TriggerQueueTest, AJumpOfTheCounterStartsLowerThresholdsFirstAndEqualOnesAsSubmitted) {
  for (const int number : {30, 10, 20, 11, 31, 40, 12}) {
    queue_->submit(when(counter_, static_cast<std::uint64_t>(number) / 10), mark(number));
  }
  counter_.set(3);
  EXPECT_EQ(after_progress(), (Marks{10, 11, 12, 20, 30, 31}));
  counter_.add(1);
  EXPECT_EQ(after_progress(), Marks{40});
}

TEST_F(TriggerQueueTest, FailuresCountForDeferredWorkOnly) {
  Waiting work = when(counter_, 2);
  work.work = true;
  queue_->submit(work, mark(1));
  queue_->submit(when(counter_, 2), mark(2));
  counter_.add_errors(1);
  counter_.add(1);
  EXPECT_EQ(after_progress(), Marks{1});
  counter_.set_errors(5);
  EXPECT_EQ(after_progress(), Marks{});
  counter_.add(1);
  EXPECT_EQ(after_progress(), Marks{2});
}

TEST_F(TriggerQueueTest, OperationsOfSeveralCountersDoNotMixUp) {
  Counter other(true, WaitKind::kNone);
  queue_->submit(when(counter_, 1), mark(1));
  queue_->submit(when(other, 1), mark(2));
  other.add(1);
  EXPECT_EQ(after_progress(), Marks{2});
  counter_.add(1);
  EXPECT_EQ(after_progress(), Marks{1});
}

TEST_F(TriggerQueueTest, AChainOfOperationsThatCountRunsInOneGo) {
  constexpr int kLength = 100;
  std::vector<std::unique_ptr<Counter>> counters;
  for (int i = 0; i <= kLength; ++i) {
    counters.push_back(std::make_unique<Counter>(true, WaitKind::kNone));
  }
  for (int i = kLength - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    queue_->submit(when(*counters[at], 1), step([&, at] { counters[at + 1]->add(1); }));
  }
  counters[0]->add(1);
  queue_->progress();
  EXPECT_EQ(counters[kLength]->value(), 1U);
}

TEST_F(TriggerQueueTest, AnOperationThatCannotStartYetHoldsUpItsOwnerOnly) {
  const int mine = 0;
  const int theirs = 0;
  queue_->submit(when(counter_, 1, &mine), mark(1, 2));
  queue_->submit(when(counter_, 1, &mine), mark(2));
  queue_->submit(when(counter_, 1, &theirs), mark(3));
  queue_->submit(when(counter_, 1), mark(4));
  counter_.add(1);
  EXPECT_EQ(after_progress(), (Marks{3, 4}));
  EXPECT_EQ(after_progress(), Marks{});
  EXPECT_EQ(after_progress(), (Marks{1, 2}));
}

TEST_F(TriggerQueueTest, TwoOwnersThatAreHeldUpDoNotHoldUpOneAnother) {
  const int mine = 0;
  const int theirs = 0;
  queue_->submit(when(counter_, 0, &mine), mark(1, 1));
  queue_->submit(when(counter_, 0, &theirs), mark(2, 5));
  queue_->submit(when(counter_, 0, &mine), mark(3));
  EXPECT_EQ(after_progress(), (Marks{1, 3}));
}

TEST_F(TriggerQueueTest, ACounterIsInUseWhileAnOperationWaitsForIt) {
  EXPECT_FALSE(counter_.in_use());
  queue_->submit(when(counter_, 1), mark(1));
  EXPECT_TRUE(counter_.in_use());
  counter_.add(1);
  queue_->progress();
  EXPECT_FALSE(counter_.in_use());
}

TEST_F(TriggerQueueTest, WithdrawnOperationsAreNeverStarted) {
  const int name = 0;
  Waiting named = when(counter_, 2);
  named.name = &name;
  queue_->submit(named, mark(1));
  queue_->submit(when(counter_, 1), mark(2));
  const auto is_named = [&](const Waiting& waiting) { return waiting.name == &name; };
  EXPECT_EQ(queue_->withdraw(is_named).size(), 1U);
  EXPECT_EQ(queue_->withdraw(is_named).size(), 0U);
  counter_.add(2);
  EXPECT_EQ(after_progress(), Marks{2});
}

TEST_F(TriggerQueueTest, ADueOperationThatIsHeldUpCanBeWithdrawn) {
  const int owner = 0;
  queue_->submit(when(counter_, 0, &owner), mark(1, 1000));
  queue_->submit(when(counter_, 0, &owner), mark(2));
  EXPECT_EQ(queue_->withdraw([](const Waiting&) { return true; }).size(), 2U);
  EXPECT_FALSE(counter_.in_use());
  EXPECT_EQ(after_progress(), Marks{});
}

TEST_F(TriggerQueueTest, AnOperationWithoutMemoryIsTriedAgain) {
  bool short_of_memory = true;
  const auto hungry = [&] {
    if (short_of_memory) throw std::bad_alloc();
    started_.push_back(1);
  };
  queue_->submit(when(counter_, 0), step(hungry));
  EXPECT_EQ(started(), Marks{});
  EXPECT_FALSE(queue_->fall_asleep());
  queue_->wake_up();
  EXPECT_THROW(queue_->progress(), std::bad_alloc);
  short_of_memory = false;
  EXPECT_EQ(after_progress(), Marks{1});
}

// As of an endpoint: a sleeper may rely on the descriptor, or is told not to sleep.
TEST_F(TriggerQueueTest, ASleeperIsWokenWhenSomethingBecomesDue) {
  const auto readable = [&] { return os::wait_readable(queue_->wake_fd(), milliseconds(0)); };
  queue_->submit(when(counter_, 2), mark(1));
  EXPECT_TRUE(queue_->fall_asleep());
  counter_.add(1);
  EXPECT_FALSE(readable()) << "nothing is due";
  counter_.add(1);
  EXPECT_TRUE(readable());
  queue_->wake_up();
  EXPECT_FALSE(queue_->fall_asleep()) << "something is due";
  queue_->wake_up();
  EXPECT_EQ(after_progress(), Marks{1});
  EXPECT_TRUE(queue_->fall_asleep());
  EXPECT_FALSE(readable());
  queue_->wake_up();
}

TEST_F(TriggerQueueTest, NoThreadSleepsWhileAnOperationIsHeldUp) {
  queue_->submit(when(counter_, 1), mark(1, 1));
  ASSERT_TRUE(queue_->fall_asleep());
  counter_.add(1);
  queue_->progress();  // of another thread, which goes away
  EXPECT_TRUE(os::wait_readable(queue_->wake_fd(), milliseconds(0)));
  queue_->wake_up();
  EXPECT_FALSE(queue_->fall_asleep());
  queue_->wake_up();
  EXPECT_EQ(after_progress(), Marks{1});
}

TEST_F(TriggerQueueTest, AThreadThatWaitsForACounterStartsWhatAnotherThreadMadeDue) {
  Counter last(true, WaitKind::kDescriptor);
  ASSERT_TRUE(last.engines().open().ok());
  ASSERT_TRUE(last.engines().attach(*queue_).ok());
  queue_->submit(when(counter_, 1), step([&] { last.add(1); }, 3));
  std::thread other([&] { counter_.add(1); });
  EXPECT_TRUE(last.engines().wait(kForever, [&] { return last.value() == 1; }));
  other.join();
  last.engines().detach(*queue_);
}

TEST_F(TriggerQueueTest, ThreadsThatSubmitCountAndDriveAtOnceLoseNothing) {
  constexpr int kThreads = 3;
  constexpr int kEach = 500;
  std::atomic<int> starts{0};
  const auto work = [&] {
    for (int i = 0; i < kEach; ++i) {
      queue_->submit(when(counter_, static_cast<std::uint64_t>(i) * 2), step([&] { ++starts; }));
      counter_.add(1);
      queue_->progress();
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  queue_->progress();
  EXPECT_EQ(starts, kThreads * kEach);
  EXPECT_FALSE(counter_.in_use());
}

}  // namespace
}  // namespace weft::device
