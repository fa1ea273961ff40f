// SPDX-License-Identifier: BSD-2-Clause
// Does every access to a region count where the region is bound, and nowhere else?
#include "device/region_counters.h"

#include <gtest/gtest.h>

namespace weft::device {
namespace {

constexpr RegionKey kFirst{1};
constexpr RegionKey kSecond{2};
constexpr Access kBoth = Access::kRemoteRead | Access::kRemoteWrite;

struct RegionCountersTest : testing::Test {
  Counter reads{true, WaitKind::kNone};
  Counter writes{true, WaitKind::kNone};
  RegionCounters counters;
};

TEST_F(RegionCountersTest, EachKindOfAccessHasACounterOfItsOwn) {
  ASSERT_TRUE(counters.bind(kFirst, this, Access::kRemoteRead, reads));
  ASSERT_TRUE(counters.bind(kFirst, this, Access::kRemoteWrite, writes));
  counters.count(kFirst, Access::kRemoteRead);
  counters.count(kFirst, Access::kRemoteRead);
  counters.count(kFirst, Access::kRemoteWrite);
  counters.count(kFirst, kBoth);
  counters.count(kSecond, kBoth);
  EXPECT_EQ(reads.value(), 3U);
  EXPECT_EQ(writes.value(), 2U);
}

TEST_F(RegionCountersTest, AnAccessOfBothKindsCountsOnceInACounterOfBoth) {
  ASSERT_TRUE(counters.bind(kFirst, this, kBoth, reads));
  counters.count(kFirst, kBoth);
  EXPECT_EQ(reads.value(), 1U);
}

TEST_F(RegionCountersTest, SeveralRegionsMayShareACounter) {
  ASSERT_TRUE(counters.bind(kFirst, this, Access::kRemoteWrite, writes));
  ASSERT_TRUE(counters.bind(kSecond, this, Access::kRemoteWrite, writes));
  counters.count(kFirst, Access::kRemoteWrite);
  counters.count(kSecond, Access::kRemoteWrite);
  EXPECT_EQ(writes.value(), 2U);
}

TEST_F(RegionCountersTest, AKindThatIsBoundIsNotBoundAgain) {
  ASSERT_TRUE(counters.bind(kFirst, this, Access::kRemoteWrite, writes));
  EXPECT_FALSE(counters.bind(kFirst, this, kBoth, reads));
  EXPECT_FALSE(reads.in_use());
}

TEST_F(RegionCountersTest, ACounterIsInUseUntilItsRegionIsReleased) {
  ASSERT_TRUE(counters.bind(kFirst, this, Access::kRemoteWrite, writes));
  EXPECT_TRUE(writes.in_use());
  counters.release(kFirst, this);
  EXPECT_FALSE(writes.in_use());
  counters.count(kFirst, Access::kRemoteWrite);
  EXPECT_EQ(writes.value(), 0U);
}

TEST_F(RegionCountersTest, TwoRegistrationsOfOneKeyHaveTheirOwnCounters) {
  const int successor = 0;
  ASSERT_TRUE(counters.bind(kFirst, this, Access::kRemoteWrite, writes));
  ASSERT_TRUE(counters.bind(kFirst, &successor, Access::kRemoteWrite, reads));
  counters.count(kFirst, Access::kRemoteWrite);
  EXPECT_EQ(reads.value(), 1U);
  EXPECT_EQ(writes.value(), 0U);
  counters.release(kFirst, this);
  EXPECT_FALSE(writes.in_use());
  EXPECT_TRUE(reads.in_use());
}

}  // namespace
}  // namespace weft::device
