// SPDX-License-Identifier: BSD-2-Clause
// Are strangers kept apart from the owners of a domain, and from each other?
#include "device/stranger.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/optional_lock.h"
#include "os/barrier.h"

namespace weft::device {
namespace {

// An engine whose every call counts, under a lock that keeps strangers out only.
class Counting : public Engine {
 public:
  explicit Counting(Gate& gate) : lock_(Locking(gate)), inner_(Locking(gate)) {}

  void progress() override { count(); }
  bool fall_asleep() override { return count() != 0; }
  void wake_up() override { count(); }
  int wake_fd() const override { return -1; }
  unsigned polls() override { return 42; }

  int count() {
    const std::lock_guard guard(lock_);
    const int before = counted_;
    const std::lock_guard again(inner_);
    counted_ = before + 1;
    return counted_;
  }

 private:
  OptionalLock lock_;
  OptionalLock inner_;
  int counted_ = 0;
};

struct StrangerTest : ::testing::Test {
  Gate gate;
  Counting engine{gate};
  Stranger stranger{engine, gate};

  void admit() {
    gate.admit_strangers([] {});
    gate.enter_first();
    gate.leave();
  }
  void SetUp() override {
    if (!os::can_raise_process_barriers()) GTEST_SKIP() << "the kernel has no such barriers";
    admit();
  }
};

TEST_F(StrangerTest, NoCallOfOwnersOrStrangersIsLost) {
  constexpr int kOwners = 300'000;
  constexpr int kStrangers = 2'000;
  std::vector<std::thread> strangers;
  for (int i = 0; i < 2; ++i) {
    strangers.emplace_back([&] {
      for (int visit = 0; visit < kStrangers; ++visit) {
        stranger.progress();
        EXPECT_TRUE(stranger.fall_asleep());
        stranger.wake_up();
      }
    });
  }
  for (int call = 0; call < kOwners; ++call) engine.count();
  for (std::thread& thread : strangers) thread.join();
  EXPECT_EQ(engine.count(), kOwners + 2 * 3 * kStrangers + 1);
}

TEST_F(StrangerTest, AStrangerWaitsUntilOwnersHaveLeft) {
  OptionalLock lock{Locking(gate)};
  std::atomic<bool> visited{false};
  lock.lock();
  std::thread visitor([&] {
    stranger.progress();
    visited = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(engine.count(), 1) << "owners inside go on";
  EXPECT_FALSE(visited);
  lock.unlock();
  visitor.join();
  EXPECT_EQ(engine.count(), 3);
}

TEST_F(StrangerTest, AnOwnerWaitsUntilTheStrangerHasLeft) {
  OptionalLock lock{Locking(gate)};
  gate.close();
  gate.await_empty();
  EXPECT_TRUE(lock.try_lock()) << "the stranger is an owner now";
  lock.unlock();
  std::atomic<bool> entered{false};
  std::thread owner([&] {
    const std::lock_guard guard(lock);
    entered = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(entered);
  gate.open();
  owner.join();
  EXPECT_TRUE(entered);
}

TEST(StrangerBefore, NobodyIsAdmittedWhileAnOwnerIsInsideWhoDidNotSaySo) {
  Gate gate;
  Counting engine{gate};
  Stranger stranger{engine, gate};
  OptionalLock lock{Locking(gate)};
  int admissions = 0;
  lock.lock();
  gate.admit_strangers([&] { ++admissions; });
  lock.lock();
  lock.unlock();
  EXPECT_FALSE(stranger.admits_strangers());
  lock.unlock();
  EXPECT_FALSE(stranger.admits_strangers());
  EXPECT_EQ(admissions, 0);
  ASSERT_TRUE(lock.try_lock_first());
  EXPECT_TRUE(stranger.admits_strangers());
  lock.unlock();
  gate.admit_strangers([&] { ++admissions; });
  ASSERT_TRUE(lock.try_lock_first());
  lock.unlock();
  EXPECT_EQ(admissions, 1);
}

// So that nobody has to come again before they may.
TEST(StrangerBefore, TheyAreAdmittedWhenTheOwnerLeavesWhoAskedForThemInside) {
  Gate gate;
  OptionalLock lock{Locking(gate)};
  int admissions = 0;
  ASSERT_TRUE(lock.try_lock_first());
  lock.lock();
  gate.admit_strangers([&] { ++admissions; });
  lock.unlock();
  EXPECT_FALSE(gate.admits_strangers());
  lock.unlock_last();
  EXPECT_TRUE(gate.admits_strangers());
  EXPECT_EQ(admissions, 1);
  gate.close();
  gate.await_empty();
  gate.open();
  ASSERT_TRUE(lock.try_lock_first());
  lock.unlock_last();
  EXPECT_EQ(admissions, 1);
}

// As an endpoint does that is greeted from another host.
TEST(StrangerBefore, APollThatMeetsThemLetsThemIn) {
  struct Meeting final : Engine {
    explicit Meeting(Gate& gate) : gate(gate), lock(Locking(gate)) {}
    void progress() override {
      const std::lock_guard guard(lock);
      gate.admit_strangers([] {});
    }
    bool fall_asleep() override { return true; }
    void wake_up() override {}
    int wake_fd() const override { return -1; }
    Gate& gate;
    OptionalLock lock;
  };
  Gate gate;
  Meeting engine(gate);
  EngineGroup group(Locking(gate), WaitKind::kNone);
  ASSERT_TRUE(group.attach(engine).ok());
  group.progress();
  EXPECT_TRUE(gate.admits_strangers());
  gate.close();
  gate.await_empty();
  gate.open();
  group.detach(engine);
}

TEST_F(StrangerTest, OneMayComeInAsSoonAsTheOwnerWhoAdmittedHimHasLeft) {
  for (int round = 0; round < 200; ++round) {
    Gate fresh;
    Counting counting{fresh};
    Stranger visitor{counting, fresh};
    std::thread visiting;
    fresh.admit_strangers([&] { visiting = std::thread([&] { visitor.progress(); }); });
    OptionalLock lock{Locking(fresh)};
    ASSERT_TRUE(lock.try_lock_first());
    for (int call = 0; call < 100; ++call) counting.count();
    lock.unlock();
    for (int call = 0; call < 100; ++call) counting.count();
    visiting.join();
    EXPECT_EQ(counting.count(), 202);
  }
}

// Whoever watches an engine does not disturb those who drive it.
TEST_F(StrangerTest, PollsAreCountedFromOutside) {
  OptionalLock lock{Locking(gate)};
  const std::lock_guard inside(lock);
  std::thread([&] { EXPECT_EQ(stranger.polls(), 42U); }).join();
}

TEST_F(StrangerTest, OneThreadMayBeBothInTurns) {
  for (int turn = 0; turn < 100; ++turn) {
    stranger.progress();
    engine.count();
  }
  EXPECT_EQ(engine.count(), 201);
}

}  // namespace
}  // namespace weft::device
