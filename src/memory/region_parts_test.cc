// SPDX-License-Identifier: BSD-2-Clause
// Which bytes of a region are closed until they are refreshed? fi_mr(3), FI_MR_MMU_NOTIFY
#include "memory/region_parts.h"

#include <gtest/gtest.h>

namespace weft::memory {
namespace {

LocalRange range(std::uint64_t base, std::uint64_t length) {
  return {reinterpret_cast<void*>(base), length};
}

RegionParts look(const RegionParts& parts, const LocalRange& at,
                 std::vector<os::AddressRange> mapped) {
  return looked_at(parts, {&at, 1}, mapped);
}

TEST(RegionParts, AreSplitWhereTheStateChanges) {
  const RegionParts parts{{100, 50, false}};
  const RegionParts once = look(parts, range(110, 10), {});
  EXPECT_EQ(once, (RegionParts{{100, 10, false}, {110, 10, true}, {120, 30, false}}));
  const RegionParts twice = look(once, range(90, 15), {});
  EXPECT_EQ(twice,
            (RegionParts{{100, 5, true}, {105, 5, false}, {110, 10, true}, {120, 30, false}}));
  EXPECT_EQ(look(twice, range(140, 1000), {}).back(), (RegionPart{140, 10, true}));
}

TEST(RegionParts, AreOpenWhereTheyAreMapped) {
  const RegionParts parts{{100, 50, true}};
  EXPECT_EQ(
      look(parts, range(100, 50), {{0, 20}, {90, 105}, {120, 130}, {149, 300}}),
      (RegionParts{
          {100, 5, false}, {105, 15, true}, {120, 10, false}, {130, 19, true}, {149, 1, false}}));
  EXPECT_EQ(look(parts, range(110, 5), {{0, 1000}}),
            (RegionParts{{100, 10, true}, {110, 5, false}, {115, 35, true}}));
}

TEST(RegionParts, AreJoinedWhereItIsTheSame) {
  RegionParts parts = look({{100, 50, true}}, range(100, 20), {{0, 1000}});
  parts = look(parts, range(120, 20), {{0, 1000}});
  EXPECT_EQ(parts, (RegionParts{{100, 40, false}, {140, 10, true}}));
  EXPECT_EQ(look(parts, range(0, 1000), {{0, 1000}}), (RegionParts{{100, 50, false}}));
}

TEST(RegionParts, OfSegmentsThatLieApartStayApart) {
  const RegionParts parts = look({{500, 50, false}, {100, 50, false}}, range(0, 1000), {});
  EXPECT_EQ(parts, (RegionParts{{500, 50, true}, {100, 50, true}}));
  EXPECT_EQ(look(parts, range(120, 400), {{0, 1000}}),
            (RegionParts{{500, 20, false}, {520, 30, true}, {100, 20, true}, {120, 30, false}}));
}

TEST(RegionParts, OfAnEmptyRegionAreOneWithoutBytes) {
  const RegionParts parts = look({{100, 0, false}}, range(0, 1000), {});
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].length, 0u);
}

TEST(RegionParts, OfAnEmptySegmentDisappear) {
  EXPECT_EQ(look({{100, 0, false}, {200, 10, false}}, range(0, 1000), {{0, 1000}}),
            (RegionParts{{200, 10, false}}));
}

TEST(RegionParts, MayReachTheEndOfTheAddressSpace) {
  constexpr std::uint64_t kBase = ~std::uint64_t{0} - 99;  // 100 bytes before 2^64
  const RegionParts parts{{kBase, 100, false}};
  EXPECT_TRUE(contain(parts, range(kBase + 50, 50)));
  EXPECT_FALSE(contain(parts, range(kBase + 50, 51)));
  EXPECT_EQ(look(parts, range(kBase, 100), {}), (RegionParts{{kBase, 100, true}}));
  EXPECT_EQ(look(parts, range(kBase + 10, 90), {}),
            (RegionParts{{kBase, 10, false}, {kBase + 10, 90, true}}));
}

TEST(RegionParts, ContainWhatLiesInTheRegion) {
  const RegionParts parts{{500, 50, false}, {100, 20, false}, {550, 10, false}, {120, 30, true}};
  EXPECT_TRUE(contain(parts, range(500, 50)));
  EXPECT_TRUE(contain(parts, range(540, 20)));
  EXPECT_TRUE(contain(parts, range(110, 40)));
  EXPECT_TRUE(contain(parts, range(130, 0)));
  EXPECT_FALSE(contain(parts, range(499, 2)));
  EXPECT_FALSE(contain(parts, range(559, 2)));
  EXPECT_FALSE(contain(parts, range(110, 41)));
  EXPECT_FALSE(contain(parts, range(110, ~0ull)));
}

}  // namespace
}  // namespace weft::memory
