// SPDX-License-Identifier: BSD-2-Clause
// When a removal returns, has every peer, alive, stopped or dead, let go of the region?
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <thread>

#include "memory/access_guard.h"
#include "memory/region_table.h"

namespace weft::memory {
namespace {

constexpr DomainId kDomain{1};
constexpr int kLong = 60000;  // more patience than a test has

class RegionRemoval : public testing::Test {
 protected:
  RegionRemoval() {
    EXPECT_NE(::mkdtemp(directory_.data()), nullptr);
    table_ = std::move(RegionTable::create(directory_)).value();
    region_ = add(1);
  }
  ~RegionRemoval() override {
    end_peer();
    std::filesystem::remove_all(directory_);
  }

  Registration add(std::uint64_t key) {
    return table_
        ->add({.domain = kDomain,
               .access = Access::kRemoteRead,
               .base = 0x10000,
               .length = 4096,
               .key = RegionKey{key}})
        .value();
  }

  std::unique_ptr<AccessGuard> attach() const {
    const auto foreign = RegionTableView::open(directory_, table_->name()).value();
    return std::move(AccessGuard::attach(foreign)).value();
  }

  static AccessError check_and_pin(AccessGuard& user, std::uint64_t key = 1) {
    const RemoteRange range{0, 1, RegionKey{key}};
    return user.check_and_pin(kDomain, Access::kRemoteRead, {&range, 1}).error;
  }

  // Starts a process that holds the region until it is killed.
  void start_peer() {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    peer_ = ::fork();
    if (peer_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const auto user = attach();
      if (check_and_pin(*user) == AccessError::kNone && ::write(ends[1], "", 1) == 1) ::pause();
      ::_exit(1);
    }
    ::close(ends[1]);
    char byte = 0;
    ASSERT_EQ(::read(ends[0], &byte, 1), 1);
    ::close(ends[0]);
  }

  void end_peer() {
    if (peer_ <= 0) return;
    ::kill(peer_, SIGKILL);
    ::waitpid(peer_, nullptr, 0);
    peer_ = 0;
  }

  static int code(const Status& status) { return status.ok() ? 0 : status.error().code; }
  // Until the region is refused to new users.
  void wait_until_removal_begins() {
    const auto user = attach();
    while (check_and_pin(*user) == AccessError::kNone) user->release();
  }

  std::string directory_ = "/dev/shm/weft-test-XXXXXX";
  std::unique_ptr<RegionTable> table_;
  Registration region_;
  pid_t peer_ = 0;
};

TEST_F(RegionRemoval, WaitsUntilTheUserThatHoldsTheRegionReleasesIt) {
  const auto user = attach();
  ASSERT_EQ(check_and_pin(*user), AccessError::kNone);
  std::atomic<bool> removed{false};
  std::atomic<bool> released{false};
  bool released_first = false;
  std::thread remover([&] {
    EXPECT_EQ(code(table_->remove(region_, kLong)), 0);
    released_first = released.load();
    removed = true;
  });
  wait_until_removal_begins();
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(removed.load());
  released = true;
  user->release();
  remover.join();
  EXPECT_TRUE(released_first);
}

TEST_F(RegionRemoval, ARegionThatIsBeingRemovedIsRefusedToNewUsers) {
  const auto user = attach();
  const auto other = attach();
  ASSERT_EQ(check_and_pin(*user), AccessError::kNone);
  EXPECT_EQ(code(table_->remove(region_, 1)), EBUSY);
  EXPECT_EQ(check_and_pin(*other), AccessError::kUnknownKey);
  user->release();
  EXPECT_EQ(check_and_pin(*user), AccessError::kUnknownKey);
}

TEST_F(RegionRemoval, ARemovalThatGaveUpSucceedsWhenItIsAskedAgain) {
  const auto user = attach();
  ASSERT_EQ(check_and_pin(*user), AccessError::kNone);
  EXPECT_EQ(code(table_->remove(region_, 1)), EBUSY);
  EXPECT_EQ(code(table_->remove(region_, 1)), EBUSY);
  user->release();
  EXPECT_EQ(code(table_->remove(region_, 1)), 0);
}

TEST_F(RegionRemoval, TheMemoryOfARegionInUseIsNotNamedByANewRegion) {
  const auto user = attach();
  ASSERT_EQ(check_and_pin(*user), AccessError::kNone);
  EXPECT_EQ(code(table_->remove(region_, 1)), EBUSY);
  const Registration next = add(1);
  EXPECT_NE(next.slot, region_.slot);
  EXPECT_EQ(code(table_->remove(next, kLong)), 0);
  user->release();
}

TEST_F(RegionRemoval, UsersOfOtherRegionsDelayNothing) {
  const Registration other = add(2);
  const auto user = attach();
  ASSERT_EQ(check_and_pin(*user, 1), AccessError::kNone);
  EXPECT_EQ(code(table_->remove(other, 0)), 0);
  user->release();
}

TEST_F(RegionRemoval, ARefusedOperationHoldsNoneOfItsRegions) {
  const auto user = attach();
  const std::array<RemoteRange, 2> ranges{{{0, 1, RegionKey{1}}, {0, 1, RegionKey{99}}}};
  EXPECT_EQ(user->check_and_pin(kDomain, Access::kRemoteRead, ranges).error,
            AccessError::kUnknownKey);
  EXPECT_EQ(code(table_->remove(region_, 0)), 0);
}

TEST_F(RegionRemoval, EveryOneOfEightRegionsIsHeld) {
  std::array<RemoteRange, kHazards> ranges{};
  std::array<Registration, kHazards> regions;
  for (std::size_t i = 0; i < kHazards; ++i) {
    regions[i] = add(10 + i);
    ranges[i] = {0, 1, RegionKey{10 + i}};
  }
  const auto user = attach();
  ASSERT_TRUE(user->check_and_pin(kDomain, Access::kRemoteRead, ranges).ok());
  for (const Registration& region : regions) EXPECT_EQ(code(table_->remove(region, 0)), EBUSY);
  user->release();
  for (const Registration& region : regions) EXPECT_EQ(code(table_->remove(region, 0)), 0);
}

TEST_F(RegionRemoval, AUserThatDetachesLetsGo) {
  auto user = attach();
  ASSERT_EQ(check_and_pin(*user), AccessError::kNone);
  user.reset();
  EXPECT_EQ(code(table_->remove(region_, 0)), 0);
}

TEST_F(RegionRemoval, AProcessThatHoldsTheRegionDelaysItEvenWhenStopped) {
  start_peer();
  ASSERT_EQ(::kill(peer_, SIGSTOP), 0);
  EXPECT_EQ(code(table_->remove(region_, 20)), EBUSY);
}

TEST_F(RegionRemoval, AProcessKilledWhileHoldingReleasesTheRegion) {
  start_peer();
  end_peer();
  EXPECT_EQ(code(table_->remove(region_, 0)), 0);
}

TEST_F(RegionRemoval, AProcessKilledDuringTheRemovalReleasesTheRegion) {
  start_peer();
  std::thread remover([&] { EXPECT_EQ(code(table_->remove(region_, kLong)), 0); });
  wait_until_removal_begins();
  end_peer();
  remover.join();
}

TEST_F(RegionRemoval, TheRecordOfADeadUserServesTheNextOne) {
  start_peer();
  end_peer();
  const auto user = attach();  // in the record with the dead user's hazard
  EXPECT_EQ(code(table_->remove(region_, 0)), 0);
}

}  // namespace
}  // namespace weft::memory
