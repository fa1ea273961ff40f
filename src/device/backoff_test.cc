// SPDX-License-Identifier: BSD-2-Clause
// Does patience grow, and begin anew?
#include "device/backoff.h"

#include <gtest/gtest.h>

namespace weft::device {
namespace {

using std::chrono::nanoseconds;

TEST(Backoff, LooksAtOnceForAWhileThenEverMoreSeldom) {
  Backoff backoff;
  unsigned eager = 0;
  while (backoff.next() == nanoseconds(0)) ++eager;
  EXPECT_GT(eager, 10u);
  nanoseconds before = backoff.next();
  for (int i = 0; i < 100; ++i) {
    const nanoseconds nap = backoff.next();
    EXPECT_GE(nap, before);
    EXPECT_LE(nap, std::chrono::milliseconds(2));
    before = nap;
  }
  EXPECT_EQ(before, std::chrono::milliseconds(2));
}

TEST(Backoff, BeginsAnewAfterSuccess) {
  Backoff backoff;
  for (int i = 0; i < 200; ++i) backoff.next();
  backoff.reset();
  EXPECT_EQ(backoff.next(), nanoseconds(0));
}

}  // namespace
}  // namespace weft::device
