// SPDX-License-Identifier: BSD-2-Clause
// Are regions reached through endpoints with their authorization key only?
#include <gtest/gtest.h>

#include "memory/access_guard.h"
#include "memory/own_memory.h"
#include "memory/region_table.h"
#include "os/test_directory_support.h"

namespace weft::memory {
namespace {

constexpr DomainId kDomain{1};
constexpr RegionKey kKey{1};
constexpr std::uint64_t kLength = 64;

class RegionAuthorization : public testing::Test {
 protected:
  Registration add(std::uint32_t authorization, bool disabled = false) {
    RegionAttributes wanted;
    wanted.domain = kDomain;
    wanted.access = Access::kRemoteRead | Access::kRemoteWrite;
    wanted.base = reinterpret_cast<std::uint64_t>(bytes_);
    wanted.length = kLength;
    wanted.key = kKey;
    wanted.disabled = disabled;
    wanted.authorization = authorization;
    return table_->add(wanted).value();
  }
  AccessError check(std::uint32_t authorization, std::uint64_t length = 8) {
    const RemoteRange range{0, length, kKey};
    const Grant grant = user_->check_and_pin({kDomain, Access::kRemoteRead, 0, authorization},
                                             Access::kRemoteRead, {&range, 1});
    user_->release();
    return grant.error;
  }

  os::TestDirectory directory_;
  std::unique_ptr<RegionTable> table_ = std::move(RegionTable::create(directory_.path())).value();
  std::unique_ptr<AccessGuard> user_ =
      std::move(
          AccessGuard::attach(RegionTableView::open(directory_.path(), table_->name()).value()))
          .value();
  std::byte bytes_[kLength]{};
};

TEST_F(RegionAuthorization, TheNumbersOfRegionAndEndpointAreEqual) {
  for (const std::uint32_t number : {0U, 1U, kMaxAuthorizations}) {
    const Registration region = add(number);
    EXPECT_EQ(check(number), AccessError::kNone);
    for (const std::uint32_t other : {0U, 1U, 2U, 256U, kMaxAuthorizations}) {
      if (other != number) {
        EXPECT_EQ(check(other), AccessError::kOtherAuthorization) << other;
      }
    }
    EXPECT_TRUE(table_->remove(region).ok());
  }
}

TEST_F(RegionAuthorization, ItStaysWhenTheRegionIsEnabledRefreshedAndCounted) {
  const Registration region = add(5, true);
  EXPECT_EQ(check(5), AccessError::kDisabled);
  EXPECT_EQ(check(4), AccessError::kDisabled);
  table_->enable(region);
  table_->report_accesses(region, Access::kRemoteRead);
  EXPECT_TRUE(table_->refresh(region, [](RegionParts& parts) { parts.push_back({}); }).ok());
  EXPECT_EQ(check(5), AccessError::kNone);
  EXPECT_EQ(check(4), AccessError::kOtherAuthorization);
}

// Neither key nor address of a zero-length access is validated, but it is not counted either.
TEST_F(RegionAuthorization, AnAccessOfNoBytesWithAnotherKeyIsNotReported) {
  const Registration region = add(5);
  table_->report_accesses(region, Access::kRemoteRead);
  EXPECT_EQ(check(4, 0), AccessError::kNone);
  EXPECT_TRUE(user_->keys_to_report().empty());
  EXPECT_EQ(check(5, 0), AccessError::kNone);
  EXPECT_EQ(user_->keys_to_report().size(), 1U);
}

TEST_F(RegionAuthorization, TheOwnerChecksItForPeers) {
  add(5);
  std::byte read[8];
  OwnMemory right(table_->for_owner(), kDomain, {}, 0, 5);
  OwnMemory wrong(table_->for_owner(), kDomain, {}, 0, 4);
  EXPECT_TRUE(right.read({0, sizeof read, kKey}, read).ok());
  EXPECT_EQ(wrong.read({0, sizeof read, kKey}, read).refusal, AccessError::kOtherAuthorization);
}

}  // namespace
}  // namespace weft::memory
