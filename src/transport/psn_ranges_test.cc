// SPDX-License-Identifier: BSD-2-Clause
// Which packets are missing?
#include "transport/psn_ranges.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

namespace weft::transport {
namespace {

const Psn kBase(0xFF'FFF0);  // the wrap lies among them

PsnRange range(std::int32_t first, std::uint32_t count) { return {kBase.after(first), count}; }

std::string text(const PsnRanges& ranges) {
  std::string out;
  for (const PsnRange& each : ranges) {
    out += (out.empty() ? "" : " ") + std::to_string(each.first.since(kBase)) + "+" +
           std::to_string(each.count);
  }
  return out;
}

PsnRanges made_of(std::initializer_list<PsnRange> all) {
  PsnRanges ranges;
  for (const PsnRange& each : all) ranges.add(each);
  return ranges;
}

TEST(PsnRanges, AddedOnesThatTouchOrOverlapBecomeOne) {
  const struct {
    PsnRange added;
    const char* all;
  } kRows[] = {{range(0, 0), "10+5 20+5 30+5"},
               {range(0, 5), "0+5 10+5 20+5 30+5"},
               {range(8, 2), "8+7 20+5 30+5"},
               {range(15, 1), "10+6 20+5 30+5"},
               {range(15, 5), "10+15 30+5"},
               {range(12, 10), "10+15 30+5"},
               {range(9, 40), "9+40"},
               {range(11, 3), "10+5 20+5 30+5"},
               {range(17, 2), "10+5 17+2 20+5 30+5"},
               {range(34, 10), "10+5 20+5 30+14"},
               {range(40, 1), "10+5 20+5 30+5 40+1"},
               {range(10, 5), "10+5 20+5 30+5"}};
  for (const auto& row : kRows) {
    PsnRanges ranges = made_of({range(30, 5), range(10, 5), range(20, 5)});
    ranges.add(row.added);
    EXPECT_EQ(text(ranges), row.all);
  }
}

TEST(PsnRanges, RemovedOnesLeaveWhatIsBeforeAndBehind) {
  const struct {
    PsnRange removed;
    const char* left;
  } kRows[] = {{range(0, 10), "10+5 20+5"}, {range(10, 5), "20+5"},
               {range(11, 0), "10+5 20+5"}, {range(12, 1), "10+2 13+2 20+5"},
               {range(8, 4), "12+3 20+5"},  {range(13, 9), "10+3 22+3"},
               {range(0, 50), ""},          {range(14, 1), "10+4 20+5"},
               {range(15, 5), "10+5 20+5"}, {range(10, 1), "11+4 20+5"}};
  for (const auto& row : kRows) {
    PsnRanges ranges = made_of({range(10, 5), range(20, 5)});
    ranges.remove(row.removed);
    EXPECT_EQ(text(ranges), row.left);
  }
}

TEST(PsnRanges, ForgetsWhatIsBefore) {
  const struct {
    std::int32_t before;
    const char* left;
  } kRows[] = {{0, "10+5 20+5"}, {10, "10+5 20+5"}, {12, "12+3 20+5"}, {15, "20+5"},
               {17, "20+5"},     {24, "24+1"},      {25, ""},          {90, ""}};
  for (const auto& row : kRows) {
    PsnRanges ranges = made_of({range(10, 5), range(20, 5)});
    ranges.forget_before(kBase.after(row.before));
    EXPECT_EQ(text(ranges), row.left);
  }
}

TEST(PsnRanges, FindsTheFirstWithinARange) {
  const PsnRanges ranges = made_of({range(10, 5), range(20, 5)});
  const struct {
    PsnRange within;
    PsnRange found;
  } kRows[] = {{range(0, 50), range(10, 5)},  {range(12, 50), range(12, 3)},
               {range(0, 12), range(10, 2)},  {range(12, 1), range(12, 1)},
               {range(15, 50), range(20, 5)}, {range(15, 5), range(15, 0)},
               {range(25, 5), range(25, 0)}};
  for (const auto& row : kRows) EXPECT_EQ(ranges.first_in(row.within), row.found);
}

TEST(PsnRanges, HasNothingWhenCleared) {
  PsnRanges ranges = made_of({range(10, 5), range(20, 5)});
  EXPECT_EQ(ranges.count(), 10U);
  EXPECT_EQ(ranges.front(), range(10, 5));
  ranges.clear();
  EXPECT_TRUE(ranges.empty());
  EXPECT_EQ(ranges.count(), 0U);
}

// Against a set of single numbers.
TEST(PsnRanges, AreWhatASetWouldBe) {
  std::mt19937 random(1);
  PsnRanges ranges;
  std::set<int> model;
  for (int step = 0; step < 20'000; ++step) {
    const int first = static_cast<int>(random() % 60);
    const int count = static_cast<int>(random() % 12);
    const unsigned what = random() % 20;
    if (what < 10) {
      ranges.add(range(first, static_cast<std::uint32_t>(count)));
      for (int i = 0; i < count; ++i) model.insert(first + i);
    } else if (what < 19) {
      ranges.remove(range(first, static_cast<std::uint32_t>(count)));
      for (int i = 0; i < count; ++i) model.erase(first + i);
    } else {
      ranges.forget_before(kBase.after(first));
      model.erase(model.begin(), model.lower_bound(first));
    }
    ASSERT_EQ(ranges.count(), model.size());
    ASSERT_EQ(ranges.empty(), model.empty());
    for (int i = 0; i < 75; ++i) ASSERT_EQ(ranges.has(kBase.after(i)), model.contains(i)) << i;
    for (auto each = ranges.begin(); each != ranges.end() && each + 1 != ranges.end(); ++each)
      ASSERT_TRUE(each->end().before((each + 1)->first)) << "ranges touch";
  }
}

}  // namespace
}  // namespace weft::transport
