// SPDX-License-Identifier: BSD-2-Clause
// Does the choice between two ways follow what they cost?
#include "link_shm/faster_way.h"

#include <gtest/gtest.h>

namespace weft::shm {
namespace {

using std::chrono::nanoseconds;
using Way = FasterWay::Way;

// Of `operations`, how many took the second way when the two cost that much.
int second_of(FasterWay& ways, int operations, nanoseconds first, nanoseconds second) {
  int count = 0;
  for (int i = 0; i < operations; ++i) {
    const bool takes_second = ways.choose() == Way::kSecond;
    if (takes_second) ++count;
    if (ways.timed()) ways.took(takes_second ? second : first);
  }
  return count;
}

constexpr int kPeriod = 2048;

TEST(FasterWay, TriesBothAndThenTakesTheFaster) {
  FasterWay ways;
  EXPECT_EQ(second_of(ways, 32, nanoseconds(500), nanoseconds(900)), 16);
  EXPECT_EQ(second_of(ways, kPeriod - 32, nanoseconds(500), nanoseconds(900)), 0);
  FasterWay others;
  EXPECT_EQ(second_of(others, 32, nanoseconds(1800), nanoseconds(700)), 16);
  EXPECT_EQ(second_of(others, kPeriod - 32, nanoseconds(1800), nanoseconds(700)), kPeriod - 32);
}

TEST(FasterWay, FollowsAChangeWithinAPeriod) {
  FasterWay ways;
  second_of(ways, kPeriod / 2, nanoseconds(500), nanoseconds(2500));
  second_of(ways, kPeriod, nanoseconds(500), nanoseconds(300));
  EXPECT_GE(second_of(ways, 10 * kPeriod, nanoseconds(500), nanoseconds(300)), 10 * (kPeriod - 16));
  second_of(ways, kPeriod, nanoseconds(500), nanoseconds(2500));
  EXPECT_LE(second_of(ways, 10 * kPeriod, nanoseconds(500), nanoseconds(2500)), 10 * 16);
}

// How often the second way was tried in so many operations when it fails each time.
int failures_in(FasterWay& ways, int operations) {
  int failed = 0;
  for (int i = 0; i < operations; ++i) {
    if (ways.choose() == Way::kSecond) {
      ways.second_failed();
      ++failed;
    } else if (ways.timed()) {
      ways.took(nanoseconds(500));
    }
  }
  return failed;
}

TEST(FasterWay, TriesAWayThatFailsEverLessOften) {
  FasterWay ways;
  const int soon = failures_in(ways, kPeriod);
  EXPECT_GE(soon, 4);
  EXPECT_LE(soon, 8);
  EXPECT_LE(failures_in(ways, 10 * kPeriod), 12);
}

TEST(FasterWay, ComesBackToAWayThatFailedOnce) {
  FasterWay ways;
  second_of(ways, 100, nanoseconds(1800), nanoseconds(700));
  ASSERT_EQ(ways.choose(), Way::kSecond);
  ways.second_failed();
  EXPECT_GE(second_of(ways, 200, nanoseconds(1800), nanoseconds(700)), 140);
}

TEST(FasterWay, DoesNotTimeTheFirstOfATrial) {
  FasterWay ways;
  int timed = 0;
  for (int i = 0; i < 32; ++i) {
    ways.choose();
    EXPECT_EQ(ways.timed(), i % 16 >= 8) << i;
    if (ways.timed()) ++timed;
  }
  EXPECT_EQ(timed, 16);
}

}  // namespace
}  // namespace weft::shm
