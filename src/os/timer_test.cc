// SPDX-License-Identifier: BSD-2-Clause
// Does the descriptor become readable when the time is over, and not before?
#include "os/timer.h"

#include <gtest/gtest.h>

#include "os/event.h"

namespace weft::os {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(Timer, IsReadableOnceTheTimeIsOver) {
  Timer timer = std::move(Timer::create()).value();
  EXPECT_FALSE(wait_readable(timer.fd(), milliseconds(0)));
  timer.set(milliseconds(1));
  EXPECT_TRUE(wait_readable(timer.fd(), milliseconds(20'000)));
  timer.set(milliseconds(0));
  EXPECT_TRUE(wait_readable(timer.fd(), milliseconds(20'000)));
}

TEST(Timer, SettingItAgainEndsTheTimeBefore) {
  Timer timer = std::move(Timer::create()).value();
  timer.set(milliseconds(1));
  ASSERT_TRUE(wait_readable(timer.fd(), milliseconds(20'000)));
  timer.set(hours(1));
  EXPECT_FALSE(wait_readable(timer.fd(), milliseconds(0)));
  timer.set(milliseconds(-5));
  ASSERT_TRUE(wait_readable(timer.fd(), milliseconds(20'000)));
  timer.set(Timer::kNever);
  EXPECT_FALSE(wait_readable(timer.fd(), milliseconds(5)));
}

}  // namespace
}  // namespace weft::os
