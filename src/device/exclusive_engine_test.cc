// SPDX-License-Identifier: BSD-2-Clause
// Are foreign threads kept apart from the owners of a domain, and from each other?
#include "device/exclusive_engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "os/barrier.h"
#include "os/optional_lock.h"

namespace weft::device {
namespace {

// An engine whose every call counts, under a lock that keeps foreign threads out only.
class Counting : public Engine {
 public:
  explicit Counting(BiasedLock& biased_lock)
      : lock_(Locking(biased_lock)), inner_(Locking(biased_lock)) {}

  void progress() override { count(); }
  bool fall_asleep() override { return count() != 0; }
  void wake_up() override { count(); }
  int wake_fd() const override { return -1; }
  unsigned polls() override { return 42; }

  int count() {
    const Section guard(lock_);
    const int before = counted_;
    const Section again(inner_);
    counted_ = before + 1;
    return counted_;
  }

 private:
  OptionalLock lock_;
  OptionalLock inner_;
  int counted_ = 0;
};

struct ExclusiveEngineTest : ::testing::Test {
  BiasedLock biased_lock;
  Counting engine{biased_lock};
  ExclusiveEngine engine_under_test{engine, biased_lock};

  void SetUp() override {
    if (!os::can_raise_process_barriers()) GTEST_SKIP() << "the kernel has no such barriers";
  }
};

TEST_F(ExclusiveEngineTest, NoCallOfOwnersOrForeignThreadsIsLost) {
  constexpr int kOwners = 300'000;
  constexpr int kForeignCalls = 2'000;
  std::vector<std::thread> foreign_threads;
  for (int i = 0; i < 2; ++i) {
    foreign_threads.emplace_back([&] {
      for (int entry = 0; entry < kForeignCalls; ++entry) {
        engine_under_test.progress();
        EXPECT_TRUE(engine_under_test.fall_asleep());
        engine_under_test.wake_up();
      }
    });
  }
  for (int call = 0; call < kOwners; ++call) engine.count();
  for (std::thread& thread : foreign_threads) thread.join();
  EXPECT_EQ(engine.count(), kOwners + 2 * 3 * kForeignCalls + 1);
}

TEST_F(ExclusiveEngineTest, AForeignThreadWaitsUntilOwnersHaveLeft) {
  OptionalLock lock{Locking(biased_lock)};
  std::atomic<bool> visited{false};
  std::optional<Section> section(std::in_place, lock);
  std::thread visitor([&] {
    engine_under_test.progress();
    visited = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(engine.count(), 1) << "owners inside go on";
  EXPECT_FALSE(visited);
  section.reset();
  visitor.join();
  EXPECT_EQ(engine.count(), 3);
}

TEST_F(ExclusiveEngineTest, AnOwnerWaitsUntilTheForeignThreadHasLeft) {
  OptionalLock lock{Locking(biased_lock)};
  biased_lock.enter_foreign();
  { const Section section(lock); }  // the stranger is an owner now
  std::atomic<bool> entered{false};
  std::thread owner([&] {
    const Section section(lock);
    entered = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(entered);
  biased_lock.leave_foreign();
  owner.join();
  EXPECT_TRUE(entered);
}

TEST_F(ExclusiveEngineTest, ControlCallsOfManyThreadsMeetNoOwnerInside) {
  OptionalLock lock{Locking(biased_lock)};
  int count = 0;
  constexpr int kCalls = 1'000;
  const auto control = [&] {
    for (int call = 0; call < kCalls; ++call) {
      const ControlGuard guard(lock);
      const ControlGuard again(lock);
      const Section as_an_owner_does(lock);
      ++count;
    }
  };
  std::thread one(control);
  std::thread two(control);
  for (int call = 0; call < kCalls; ++call) {
    const Section section(lock);
    const std::lock_guard inner(lock.inner());
    ++count;
  }
  one.join();
  two.join();
  EXPECT_EQ(count, 3 * kCalls);
}

// Destroys engines as soon as they are detached.
TEST_F(ExclusiveEngineTest, EnginesComeAndGoWhileTheOwnerDrivesTheirGroup) {
  EngineGroup group(Locking(biased_lock), WaitKind::kNone);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        auto passing = std::make_unique<Counting>(biased_lock);
        EXPECT_TRUE(group.attach(*passing).ok());
        group.detach(*passing);
      }
    });
  }
  std::thread owner([&] {
    while (!done) group.progress();
  });
  for (std::thread& thread : threads) thread.join();
  done = true;
  owner.join();
}

// Watching an engine does not disturb the threads that drive it.
TEST_F(ExclusiveEngineTest, PollsAreCountedFromOutside) {
  OptionalLock lock{Locking(biased_lock)};
  const Section inside(lock);
  std::thread([&] { EXPECT_EQ(engine_under_test.polls(), 42U); }).join();
}

TEST_F(ExclusiveEngineTest, OneThreadMayBeBothInTurns) {
  for (int turn = 0; turn < 100; ++turn) {
    engine_under_test.progress();
    engine.count();
  }
  EXPECT_EQ(engine.count(), 201);
}

}  // namespace
}  // namespace weft::device
