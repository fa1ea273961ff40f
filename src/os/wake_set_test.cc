// SPDX-License-Identifier: BSD-2-Clause
// Is the descriptor readable while a member is, once a time is over, and after a ring?
#include "os/wake_set.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weft::os {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

struct WakeSetTest : ::testing::Test {
  WakeSet set = std::move(WakeSet::create()).value();

  bool readable(milliseconds timeout = milliseconds(0)) const {
    return wait_readable(set.fd(), timeout);
  }
};

TEST_F(WakeSetTest, IsReadableWhileAMemberIs) {
  Event event = std::move(Event::create()).value();
  ASSERT_TRUE(set.add(event.fd()).ok());
  EXPECT_FALSE(readable());
  event.set();
  EXPECT_TRUE(readable());
  set.silence();
  EXPECT_TRUE(readable()) << "the member is readable still";
  event.clear();
  EXPECT_FALSE(readable());
  event.set();
  set.remove(event.fd());
  EXPECT_FALSE(readable());
}

TEST_F(WakeSetTest, ARingMakesItReadableUntilSilenced) {
  set.ring();
  EXPECT_TRUE(readable(milliseconds(20'000)));
  EXPECT_TRUE(readable()) << "for all that sleep on it";
  set.silence();
  EXPECT_FALSE(readable());
  set.silence();
  EXPECT_FALSE(readable());
}

TEST_F(WakeSetTest, ATimeThatIsSetReplacesARingAndTheTimeBefore) {
  set.ring();
  set.wake_in(hours(1));
  EXPECT_FALSE(readable(milliseconds(5)));
  set.wake_in(milliseconds(1));
  EXPECT_TRUE(readable(milliseconds(20'000)));
  set.wake_in(Timer::kNever);
  EXPECT_FALSE(readable(milliseconds(5)));
}

TEST_F(WakeSetTest, TheEarlierOfTwoTimesCounts) {
  set.wake_within(hours(1));
  set.wake_within(milliseconds(1));
  set.wake_within(hours(1));
  set.wake_within(Timer::kNever);
  EXPECT_TRUE(readable(milliseconds(20'000)));
  set.wake_within(hours(1));
  EXPECT_TRUE(readable()) << "a time that is over is earlier";
  set.wake_in(hours(1));
  EXPECT_FALSE(readable(milliseconds(5)));
  set.ring();
  set.wake_within(hours(1));
  EXPECT_TRUE(readable());
}

TEST_F(WakeSetTest, SilenceLeavesATimeThatIsSet) {
  set.wake_in(milliseconds(1));
  set.silence();
  EXPECT_TRUE(readable(milliseconds(20'000)));
}

TEST_F(WakeSetTest, AForkedChildChangesNothing) {
  set.wake_in(hours(1));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    set.remove(set.fd());
    set.ring();
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(readable(milliseconds(5)));
}

}  // namespace
}  // namespace weft::os
