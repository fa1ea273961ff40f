// SPDX-License-Identifier: BSD-2-Clause
// What may peers do with a region before it is enabled, while it is refreshed, and afterwards?
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "memory/access_guard.h"
#include "memory/region_table.h"

namespace weft::memory {
namespace {

constexpr DomainId kDomain{1};
constexpr std::uint64_t kBase = 0x10000;
constexpr std::uint64_t kLength = 4096;

class RegionRefresh : public testing::Test {
 protected:
  RegionRefresh() {
    EXPECT_NE(::mkdtemp(directory_.data()), nullptr);
    table_ = std::move(RegionTable::create(directory_)).value();
    user_ = attach();
  }
  ~RegionRefresh() override { std::filesystem::remove_all(directory_); }

  Registration add(bool disabled = false, std::span<const LocalRange> rest = {}) {
    RegionAttributes wanted;
    wanted.domain = kDomain;
    wanted.access = Access::kRemoteRead;
    wanted.base = kBase;
    wanted.length = kLength;
    wanted.key = RegionKey{1};
    wanted.rest = rest;
    wanted.disabled = disabled;
    return table_->add(wanted).value();
  }
  std::unique_ptr<AccessGuard> attach() const {
    const auto foreign = RegionTableView::open(directory_, table_->name()).value();
    return std::move(AccessGuard::attach(foreign)).value();
  }
  AccessError check(std::uint64_t offset, std::uint64_t length, std::uint32_t endpoint = 0,
                    std::size_t element = 1) {
    const RemoteRange range{offset, length, RegionKey{1}};
    const Grant grant = user_->check_and_pin({kDomain, Access::kRemoteRead, endpoint},
                                             Access::kRemoteRead, {&range, 1}, element);
    granted_ = grant.segments.size();
    user_->release();
    return grant.error;
  }
  static int code(const Status& status) { return status.ok() ? 0 : status.error().code; }

  std::string directory_ = testing::TempDir() + "refreshXXXXXX";
  std::unique_ptr<RegionTable> table_;
  std::unique_ptr<AccessGuard> user_;
  std::size_t granted_ = 0;
};

TEST_F(RegionRefresh, ADisabledRegionIsClosedUntilItIsEnabled) {
  const Registration region = add(true);
  EXPECT_EQ(check(0, 8), AccessError::kDisabled);
  table_->enable(region);
  EXPECT_EQ(check(0, 8), AccessError::kNone);
  EXPECT_EQ(check(0, 8, 5), AccessError::kNone);
}

TEST_F(RegionRefresh, ABoundRegionIsReachedThroughItsEndpointOnly) {
  const Registration region = add(true);
  table_->enable(region, 5);
  EXPECT_EQ(check(0, 8, 5), AccessError::kNone);
  EXPECT_EQ(check(0, 8, 6), AccessError::kOtherBinding);
  EXPECT_EQ(check(0, 8, 0), AccessError::kOtherBinding);
}

TEST_F(RegionRefresh, ARegionIsDisabledMeanwhileAndEnabledAfterwards) {
  const Registration region = add();
  EXPECT_EQ(check(0, 8), AccessError::kNone);
  const auto meanwhile = [&](RegionParts&) { EXPECT_EQ(check(0, 8), AccessError::kDisabled); };
  EXPECT_EQ(code(table_->refresh(region, meanwhile)), 0);
  EXPECT_EQ(check(0, 8), AccessError::kNone);
}

TEST_F(RegionRefresh, OneThatWasDisabledStaysSo) {
  const Registration region = add(true);
  EXPECT_EQ(code(table_->refresh(region, {})), 0);
  EXPECT_EQ(check(0, 8), AccessError::kDisabled);
}

TEST_F(RegionRefresh, WaitsForAccessesThatAreUnderWay) {
  const Registration region = add();
  const RemoteRange range{0, 8, RegionKey{1}};
  ASSERT_TRUE(user_->check_and_pin(kDomain, Access::kRemoteRead, {&range, 1}).ok());
  EXPECT_EQ(code(table_->refresh(
                region, [](RegionParts&) { ADD_FAILURE(); }, 20)),
            EBUSY);
  std::atomic<bool> reread = false;
  std::thread refresher([&] {
    EXPECT_EQ(code(table_->refresh(
                  region, [&](RegionParts&) { reread = true; }, 60000)),
              0);
  });
  const auto other = attach();
  while (other->check_and_pin(kDomain, Access::kRemoteRead, {&range, 1}).ok()) other->release();
  EXPECT_FALSE(reread);
  user_->release();
  refresher.join();
  EXPECT_TRUE(reread);
  EXPECT_EQ(check(0, 8), AccessError::kNone);
}

// The parts after a look at bytes that are all mapped, or none of which is.
void set_closed(RegionParts& parts, std::uint64_t base, std::uint64_t length, bool closed) {
  const LocalRange range{reinterpret_cast<void*>(base), length};
  const os::AddressRange all{0, ~std::uint64_t{0}};
  parts = looked_at(parts, {&range, 1}, std::span(&all, closed ? 0 : 1));
}

TEST_F(RegionRefresh, ClosedBytesAreRefusedAndOthersAreNot) {
  const Registration region = add();
  const auto close = [](std::uint64_t offset, std::uint64_t length, bool closed) {
    return [=](RegionParts& parts) { set_closed(parts, kBase + offset, length, closed); };
  };
  ASSERT_EQ(code(table_->refresh(region, close(1000, 500, true))), 0);
  EXPECT_EQ(check(0, 1000), AccessError::kNone);
  EXPECT_EQ(granted_, 1u);
  EXPECT_EQ(check(0, 1001), AccessError::kNotRefreshed);
  EXPECT_EQ(check(1499, 1), AccessError::kNotRefreshed);
  EXPECT_EQ(check(1500, 2596), AccessError::kNone);
  EXPECT_EQ(check(992, 16, 0, 16), AccessError::kNotRefreshed);
  EXPECT_EQ(check(1500, 2597), AccessError::kPastEnd);
  ASSERT_EQ(code(table_->refresh(region, close(0, 1200, true))), 0);
  EXPECT_EQ(check(0, 1), AccessError::kNotRefreshed);
  ASSERT_EQ(code(table_->refresh(region, close(0, kLength, true))), 0);
  EXPECT_EQ(check(4095, 1), AccessError::kNotRefreshed);
  ASSERT_EQ(code(table_->refresh(region, close(0, kLength, false))), 0);
  EXPECT_EQ(check(0, kLength), AccessError::kNone);
  EXPECT_EQ(granted_, 1u);
}

TEST_F(RegionRefresh, PartsOfSeveralSegmentsKeepTheirOrder) {
  const LocalRange second{reinterpret_cast<void*>(kBase - 0x1000), 100};
  const Registration region = add(false, {&second, 1});
  const auto close = [](RegionParts& parts) { set_closed(parts, kBase - 0x1000, 50, true); };
  ASSERT_EQ(code(table_->refresh(region, close)), 0);
  EXPECT_EQ(check(0, kLength), AccessError::kNone);
  EXPECT_EQ(check(kLength + 49, 2), AccessError::kNotRefreshed);
  EXPECT_EQ(check(kLength + 50, 50), AccessError::kNone);
  EXPECT_EQ(check(kLength + 50, 51), AccessError::kPastEnd);
}

TEST_F(RegionRefresh, TooManyPartsAreRefusedAndNothingChanges) {
  const Registration region = add();
  const auto close_each = [](std::uint64_t holes) {
    return [=](RegionParts& parts) {
      for (std::uint64_t i = 0; i < holes; ++i) set_closed(parts, kBase + 2 * i, 1, true);
    };
  };
  EXPECT_EQ(code(table_->refresh(region, close_each(kMaxParts / 2 + 1))), ENOSPC);
  EXPECT_EQ(check(0, kLength), AccessError::kNone);
  EXPECT_EQ(code(table_->refresh(region, close_each(kMaxParts / 2))), 0);
  EXPECT_EQ(check(kMaxParts - 2, 1), AccessError::kNotRefreshed);
  EXPECT_EQ(check(kMaxParts - 1, kLength - kMaxParts + 1), AccessError::kNone);
  EXPECT_EQ(code(table_->remove(region)), 0);
  EXPECT_EQ(check(0, 8), AccessError::kUnknownKey);
}

// Users that access all the time see the region enabled, or disabled, but never without its key.
TEST_F(RegionRefresh, UsersNeverMissTheRegion) {
  const Registration region = add();
  std::atomic<bool> stop = false;
  std::thread refresher([&] {
    for (int i = 0; i < 300; ++i) EXPECT_EQ(code(table_->refresh(region, {})), 0);
    stop = true;
  });
  while (!stop) {
    const AccessError error = check(0, 8);
    if (error != AccessError::kNone && error != AccessError::kDisabled)
      ADD_FAILURE() << describe(error);
  }
  refresher.join();
}

}  // namespace
}  // namespace weft::memory
