// SPDX-License-Identifier: BSD-2-Clause
// Are numbers with a meaning kept apart, and do rights and alignment follow their arithmetic?
#include "base/types.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace weft {
namespace {

TEST(Strong, NumbersOfDifferentMeaningDoNotConvert) {
  EXPECT_FALSE((std::is_convertible_v<RegionKey, DomainId>));
  EXPECT_FALSE((std::is_convertible_v<std::uint64_t, RegionKey>));
}

TEST(Strong, NumbersOfOneMeaningAreOrderedByTheirValue) {
  EXPECT_EQ(RegionKey{7}, RegionKey{7});
  EXPECT_LT(RegionKey{7}, RegionKey{8});
  EXPECT_LT(RegionKey{8}, RegionKey{~std::uint64_t{0}});
}

TEST(Access, ARegionIncludesExactlyTheRightsItWasGiven) {
  const Access have = Access::kRemoteRead | Access::kSend;
  EXPECT_TRUE(includes(have, Access::kRemoteRead));
  EXPECT_TRUE(includes(have, Access::kRemoteRead | Access::kSend));
  EXPECT_FALSE(includes(have, Access::kRemoteWrite));
  EXPECT_FALSE(includes(have, Access::kRemoteRead | Access::kRemoteWrite));
}

TEST(Access, NoRightIsIncludedInEveryRegion) {
  EXPECT_TRUE(includes(Access::kNone, Access::kNone));
  EXPECT_FALSE(includes(Access::kNone, Access::kRead));
}

TEST(AlignUp, AMultipleStaysAndEverythingElseGoesToTheNextOne) {
  EXPECT_EQ(align_up(0, 64), 0U);
  EXPECT_EQ(align_up(1, 64), 64U);
  EXPECT_EQ(align_up(64, 64), 64U);
  EXPECT_EQ(align_up(65, 64), 128U);
  EXPECT_EQ(align_up(5, 1), 5U);
}

}  // namespace
}  // namespace weft
