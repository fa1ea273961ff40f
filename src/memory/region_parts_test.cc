// SPDX-License-Identifier: BSD-2-Clause
// Which bytes of a region are closed until they are refreshed? fi_mr(3), FI_MR_MMU_NOTIFY
#include "memory/region_parts.h"

#include <gtest/gtest.h>

namespace weft::memory {
namespace {

TEST(RegionParts, AreSplitWhereTheStateChanges) {
  RegionParts parts{{100, 50, false}};
  set_closed(parts, 110, 10, true);
  EXPECT_EQ(parts, (RegionParts{{100, 10, false}, {110, 10, true}, {120, 30, false}}));
  set_closed(parts, 90, 15, true);
  EXPECT_EQ(parts,
            (RegionParts{{100, 5, true}, {105, 5, false}, {110, 10, true}, {120, 30, false}}));
  set_closed(parts, 140, 1000, true);
  EXPECT_EQ(parts.back(), (RegionPart{140, 10, true}));
}

TEST(RegionParts, AreJoinedWhereItIsTheSame) {
  RegionParts parts{{100, 50, true}};
  set_closed(parts, 100, 20, false);
  set_closed(parts, 120, 20, false);
  EXPECT_EQ(parts, (RegionParts{{100, 40, false}, {140, 10, true}}));
  set_closed(parts, 0, 1000, false);
  EXPECT_EQ(parts, (RegionParts{{100, 50, false}}));
}

TEST(RegionParts, OfSegmentsThatLieApartStayApart) {
  RegionParts parts{{500, 50, false}, {100, 50, false}};
  set_closed(parts, 0, 1000, true);
  EXPECT_EQ(parts, (RegionParts{{500, 50, true}, {100, 50, true}}));
  set_closed(parts, 120, 400, false);
  EXPECT_EQ(parts,
            (RegionParts{{500, 20, false}, {520, 30, true}, {100, 20, true}, {120, 30, false}}));
}

TEST(RegionParts, OfAnEmptyRegionAreOneWithoutBytes) {
  RegionParts parts{{100, 0, false}};
  set_closed(parts, 0, 1000, true);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].length, 0u);
}

TEST(RegionParts, ContainWhatLiesInTheRegion) {
  const RegionParts parts{{500, 50, false}, {100, 20, false}, {120, 30, true}};
  EXPECT_TRUE(contain(parts, 500, 50));
  EXPECT_TRUE(contain(parts, 110, 40));
  EXPECT_TRUE(contain(parts, 130, 0));
  EXPECT_FALSE(contain(parts, 499, 2));
  EXPECT_FALSE(contain(parts, 549, 2));
  EXPECT_FALSE(contain(parts, 110, 41));
  EXPECT_FALSE(contain(parts, 110, ~0ull));
}

}  // namespace
}  // namespace weft::memory
