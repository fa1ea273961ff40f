// SPDX-License-Identifier: BSD-2-Clause
// Does the choice between two methods follow what they cost?
#include "link_shm/adaptive_choice.h"

#include <gtest/gtest.h>

namespace weft::shm {
namespace {

using std::chrono::nanoseconds;
using Method = AdaptiveChoice::Method;

// Of `operations`, how many took the second method when the two cost that much.
int second_of(AdaptiveChoice& methods, int operations, nanoseconds first, nanoseconds second) {
  int count = 0;
  for (int i = 0; i < operations; ++i) {
    const bool takes_second = methods.choose() == Method::kSecond;
    if (takes_second) ++count;
    if (methods.timed()) methods.took(takes_second ? second : first);
  }
  return count;
}

constexpr int kPeriod = 2048;

TEST(AdaptiveChoice, TriesBothAndThenTakesTheFaster) {
  AdaptiveChoice methods;
  EXPECT_EQ(second_of(methods, 32, nanoseconds(500), nanoseconds(900)), 16);
  EXPECT_EQ(second_of(methods, kPeriod - 32, nanoseconds(500), nanoseconds(900)), 0);
  AdaptiveChoice others;
  EXPECT_EQ(second_of(others, 32, nanoseconds(1800), nanoseconds(700)), 16);
  EXPECT_EQ(second_of(others, kPeriod - 32, nanoseconds(1800), nanoseconds(700)), kPeriod - 32);
}

TEST(AdaptiveChoice, FollowsAChangeWithinAPeriod) {
  AdaptiveChoice methods;
  second_of(methods, kPeriod / 2, nanoseconds(500), nanoseconds(2500));
  second_of(methods, kPeriod, nanoseconds(500), nanoseconds(300));
  EXPECT_GE(second_of(methods, 10 * kPeriod, nanoseconds(500), nanoseconds(300)),
            10 * (kPeriod - 16));
  second_of(methods, kPeriod, nanoseconds(500), nanoseconds(2500));
  EXPECT_LE(second_of(methods, 10 * kPeriod, nanoseconds(500), nanoseconds(2500)), 10 * 16);
}

// How often the second method was tried in so many operations when it fails each time.
int failures_in(AdaptiveChoice& methods, int operations) {
  int failed = 0;
  for (int i = 0; i < operations; ++i) {
    if (methods.choose() == Method::kSecond) {
      methods.second_failed();
      ++failed;
    } else if (methods.timed()) {
      methods.took(nanoseconds(500));
    }
  }
  return failed;
}

TEST(AdaptiveChoice, TriesAWayThatFailsEverLessOften) {
  AdaptiveChoice methods;
  const int soon = failures_in(methods, kPeriod);
  EXPECT_GE(soon, 4);
  EXPECT_LE(soon, 8);
  EXPECT_LE(failures_in(methods, 10 * kPeriod), 12);
}

TEST(AdaptiveChoice, ComesBackToAWayThatFailedOnce) {
  AdaptiveChoice methods;
  second_of(methods, 100, nanoseconds(1800), nanoseconds(700));
  ASSERT_EQ(methods.choose(), Method::kSecond);
  methods.second_failed();
  EXPECT_GE(second_of(methods, 200, nanoseconds(1800), nanoseconds(700)), 140);
}

TEST(AdaptiveChoice, DoesNotTimeTheFirstOfATrial) {
  AdaptiveChoice methods;
  int timed = 0;
  for (int i = 0; i < 32; ++i) {
    methods.choose();
    EXPECT_EQ(methods.timed(), i % 16 >= 8) << i;
    if (methods.timed()) ++timed;
  }
  EXPECT_EQ(timed, 16);
}

}  // namespace
}  // namespace weft::shm
