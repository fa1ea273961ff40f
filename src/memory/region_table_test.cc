// SPDX-License-Identifier: BSD-2-Clause
// Is a region granted exactly from its registration to its removal?
#include "memory/region_table.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>
#include <unordered_set>

#include "memory/access_guard.h"
#include "os/shared_file.h"

namespace weft::memory {
namespace {

constexpr DomainId kDomain{1};
constexpr std::uint64_t kBase = 0x7f0000000000;
constexpr std::uint64_t kLength = 4096;
constexpr std::uint64_t kHighest = ~std::uint64_t{0};

RegionAttributes region(std::uint64_t key, std::uint64_t base = kBase) {
  return {.domain = kDomain,
          .access = Access::kRemoteRead,
          .base = base,
          .length = kLength,
          .start = 0,
          .choose_key = false,
          .key = RegionKey{key}};
}

RegionAttributes region_with_chosen_key() {
  RegionAttributes attributes = region(0);
  attributes.choose_key = true;
  return attributes;
}

// A table and a user that looks keys up in it.
class RegionTableTest : public testing::Test {
 protected:
  RegionTableTest() {
    EXPECT_NE(::mkdtemp(directory_.data()), nullptr);
    auto table = RegionTable::create(directory_);
    EXPECT_TRUE(table.ok()) << table.error().message;
    table_ = std::move(table).value();
    user_ = attach();
  }
  ~RegionTableTest() override {
    user_.reset();
    table_.reset();
    std::filesystem::remove_all(directory_);
  }

  std::unique_ptr<AccessGuard> attach() const {
    auto foreign = RegionTableView::open(directory_, table_->name());
    EXPECT_TRUE(foreign.ok()) << foreign.error().message;
    auto user = AccessGuard::attach(foreign.value());
    EXPECT_TRUE(user.ok()) << user.error().message;
    return std::move(user).value();
  }

  Registration added(const RegionAttributes& attributes) const {
    const auto registration = table_->add(attributes);
    EXPECT_TRUE(registration.ok()) << registration.error().message;
    return registration.ok() ? registration.value() : Registration{};
  }

  int error_of(const RegionAttributes& attributes) const {
    const auto registration = table_->add(attributes);
    return registration.ok() ? 0 : registration.error().code;
  }

  // Where the first byte of region `key` lies, or 0 when it is refused.
  std::uint64_t address_of(RegionKey key, DomainId domain = kDomain) const {
    const RemoteRange range{0, 1, key};
    const Grant grant = user_->check_and_pin(domain, Access::kRemoteRead, {&range, 1});
    user_->release();
    return grant.ok() ? reinterpret_cast<std::uint64_t>(grant.segments[0].base) : 0;
  }

  std::string directory_ = "/dev/shm/weft-test-XXXXXX";
  std::unique_ptr<RegionTable> table_;
  std::unique_ptr<AccessGuard> user_;
};

TEST_F(RegionTableTest, ARegisteredRegionIsFoundByItsKey) {
  const Registration registration = added(region(5));
  EXPECT_EQ(registration.key, RegionKey{5});
  EXPECT_EQ(address_of(RegionKey{5}), kBase);
}

TEST_F(RegionTableTest, AnUnknownKeyIsRefused) {
  added(region(5));
  EXPECT_EQ(address_of(RegionKey{6}), 0U);
  EXPECT_EQ(address_of(RegionKey{0}), 0U);
}

TEST_F(RegionTableTest, AClosedRegionIsRefusedToAllPeers) {
  const Registration registration = added(region(5));
  EXPECT_TRUE(table_->remove(registration).ok());
  EXPECT_EQ(address_of(RegionKey{5}), 0U);
  user_ = attach();
  EXPECT_EQ(address_of(RegionKey{5}), 0U);
}

TEST_F(RegionTableTest, EveryKeyValueCanBeUsed) {
  for (const std::uint64_t key : {std::uint64_t{0}, std::uint64_t{1} << 32, kHighest}) {
    added(region(key));
    EXPECT_EQ(address_of(RegionKey{key}), kBase) << key;
  }
}

TEST_F(RegionTableTest, AKeyIsTakenOncePerDomain) {
  added(region(5));
  EXPECT_EQ(error_of(region(5, kBase + kLength)), ENOKEY);
  EXPECT_EQ(address_of(RegionKey{5}), kBase);
}

TEST_F(RegionTableTest, TheSameKeyOfTwoDomainsNamesTwoRegions) {
  added(region(5));
  RegionAttributes other = region(5, kBase + kLength);
  other.domain = DomainId{2};
  added(other);
  EXPECT_EQ(address_of(RegionKey{5}), kBase);
  EXPECT_EQ(address_of(RegionKey{5}, DomainId{2}), kBase + kLength);
  EXPECT_EQ(address_of(RegionKey{5}, DomainId{3}), 0U);
}

TEST_F(RegionTableTest, AKeyIsFreeAgainWhenItsRegionIsClosed) {
  EXPECT_TRUE(table_->remove(added(region(5))).ok());
  added(region(5, kBase + kLength));
  EXPECT_EQ(address_of(RegionKey{5}), kBase + kLength);
}

TEST_F(RegionTableTest, ARegionMayEndAtTheTopOfTheAddressSpaceButNotWrapAroundIt) {
  EXPECT_EQ(error_of(region(1, kHighest - kLength + 1)), 0);
  EXPECT_EQ(error_of(region(2, kHighest - kLength + 2)), EINVAL);
  RegionAttributes named = region(3);
  named.start = kHighest - kLength + 1;
  EXPECT_EQ(error_of(named), 0);
  named = region(4);
  named.start = kHighest - kLength + 2;
  EXPECT_EQ(error_of(named), EINVAL);
  EXPECT_EQ(address_of(RegionKey{2}), 0U);
}

TEST_F(RegionTableTest, AnEmptyRegionMayLieAnywhere) {
  RegionAttributes attributes = region(1, kHighest);
  attributes.length = 0;
  EXPECT_EQ(error_of(attributes), 0);
}

TEST_F(RegionTableTest, HundredThousandChosenKeysAreDistinctAndFound) {
  std::unordered_set<std::uint64_t> keys;
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t key = added(region_with_chosen_key()).key.v;
    EXPECT_TRUE(key != 0 && key != kHighest);
    keys.insert(key);
  }
  EXPECT_EQ(keys.size(), 100000U);
  for (const std::uint64_t key : keys) ASSERT_EQ(address_of(RegionKey{key}), kBase) << key;
}

TEST_F(RegionTableTest, AChosenKeyIsNotGivenOutAgainAfterItsRegionIsClosed) {
  std::unordered_set<std::uint64_t> keys;
  for (int i = 0; i < 5000; ++i) {
    const Registration registration = added(region_with_chosen_key());
    EXPECT_TRUE(keys.insert(registration.key.v).second);
    EXPECT_TRUE(table_->remove(registration).ok());
  }
}

// Inverts the mixing step of splitmix64.
std::uint64_t unmix(std::uint64_t x) {
  const auto inverse = [](std::uint64_t odd) {
    std::uint64_t y = odd;
    for (int i = 0; i < 6; ++i) y *= 2 - odd * y;
    return y;
  };
  const auto unshift = [](std::uint64_t y, int by) {
    std::uint64_t out = y;
    for (int i = 0; i < 64 / by; ++i) out = y ^ (out >> by);
    return out;
  };
  x = unshift(x, 31) * inverse(0x94d049bb133111eb);
  x = unshift(x, 27) * inverse(0xbf58476d1ce4e5b9);
  return unshift(x, 30);
}

// Keys were a mixed counter, combined with a secret that two inverted keys cancel.
TEST_F(RegionTableTest, ChosenKeysAreNotCountedInAWayThatCanBeInverted) {
  std::uint64_t before = unmix(added(region_with_chosen_key()).key.v);
  for (int i = 0; i < 16; ++i) {
    const std::uint64_t inverted = unmix(added(region_with_chosen_key()).key.v);
    EXPECT_GT(before ^ inverted, 0xffffU);
    before = inverted;
  }
}

TEST_F(RegionTableTest, TwoTablesDoNotChooseTheSameKeys) {
  auto other = RegionTable::create(directory_);
  ASSERT_TRUE(other.ok());
  const auto theirs = other.value()->add(region_with_chosen_key());
  ASSERT_TRUE(theirs.ok());
  EXPECT_NE(theirs.value().key, added(region_with_chosen_key()).key);
}

// Pages of this process's memory that are in use (proc_pid_statm(5)).
long resident_pages() {
  std::ifstream statm("/proc/self/statm");
  long total = 0;
  long resident = 0;
  statm >> total >> resident;
  return resident;
}

TEST_F(RegionTableTest, MemoryGrowsWithTheRegionsThatAreRegistered) {
  constexpr long kTables = 32;
  constexpr long kMostPages = 64;  // for each table with one region
  const long before = resident_pages();
  std::vector<std::unique_ptr<RegionTable>> tables;
  for (long i = 0; i < kTables; ++i) {
    tables.push_back(std::move(RegionTable::create(directory_)).value());
    ASSERT_TRUE(tables.back()->add(region(1)).ok());
  }
  EXPECT_LT(resident_pages() - before, kTables * kMostPages);
}

// One thread, and half a minute under ThreadSanitizer.
#ifndef __SANITIZE_THREAD__
TEST_F(RegionTableTest, AFullTableSaysSoAndHasRoomAgainAfterARemoval) {
  Registration last;
  for (std::uint64_t key = 0; key < kMaxRegions; ++key) last = added(region(key));
  EXPECT_EQ(error_of(region(kMaxRegions)), ENOSPC);
  EXPECT_EQ(address_of(RegionKey{0}), kBase);
  EXPECT_EQ(address_of(RegionKey{kMaxRegions - 1}), kBase);
  EXPECT_EQ(address_of(RegionKey{kMaxRegions}), 0U);
  EXPECT_TRUE(table_->remove(last).ok());
  EXPECT_EQ(error_of(region(kMaxRegions)), 0);
  EXPECT_EQ(address_of(RegionKey{kMaxRegions}), kBase);
}
#endif

TEST_F(RegionTableTest, ThreadsThatRegisterAtOnceGetRegionsOfTheirOwn) {
  const auto work = [&](std::uint64_t first) {
    for (std::uint64_t i = 0; i < 2000; ++i) {
      const Registration registration = added(region(first + i, kBase + first));
      const bool stays = i % 2 != 0 || table_->remove(registration).ok();
      EXPECT_TRUE(stays);
    }
  };
  std::thread other(work, 10000);
  work(20000);
  other.join();
  for (std::uint64_t i = 0; i < 2000; ++i) {
    EXPECT_EQ(address_of(RegionKey{10000 + i}), i % 2 == 0 ? 0 : kBase + 10000);
    EXPECT_EQ(address_of(RegionKey{20000 + i}), i % 2 == 0 ? 0 : kBase + 20000);
  }
}

TEST_F(RegionTableTest, TheFileGoesWithTheTable) {
  const std::string path = directory_ + "/" + table_->name();
  EXPECT_TRUE(std::filesystem::exists(path));
  user_.reset();
  table_.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(RegionTableTest, ATableOverwrittenByPeersNeverStopsItsOwner) {
  // In a child, with an alarm: a crash or an endless search then fails this test only.
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    auto table = std::move(RegionTable::create(directory_)).value();
    const auto file = os::SharedFile::open(directory_ + "/" + table->name());
    const auto memory = file.value()->map(0, kTableSize);
    auto* index = memory.value().at<std::uint32_t>(IndexWord{}.at());
    auto* slots = memory.value().at<std::uint32_t>(kSlotsAt);
    std::mt19937 random(1);
    std::vector<Registration> live;
    for (std::uint64_t i = 0; i < 600; ++i) {
      if (auto registration = table->add(region(i)); registration.ok()) {
        live.push_back(registration.value());
      }
      for (int j = 0; j < 40; ++j) {
        const std::uint32_t wild = random();
        index[random() % 1024] = wild % 4 == 0 ? wild : wild % (kMaxRegions + 2);
        if (i > 300) slots[random() % 4096] = wild;
      }
      if (i % 3 == 0 && !live.empty()) {
        (void)table->remove(live.back(), 1);
        live.pop_back();
      }
    }
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace weft::memory
