// SPDX-License-Identifier: BSD-2-Clause
// How fast may packets leave that are not acknowledged?
#include "transport/pace.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace weft::transport {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::size_t kBytes = 1000;
constexpr double kGigabyte = 1e9;

// A sender that has a packet in every microsecond: 1 GB/s.
class Eager {
 public:
  // Sends what it may until then; returns the rate.
  double send_for(Duration time) {
    const Time begin = now_;
    std::size_t sent = 0;
    for (; now_ < begin + time; now_ += microseconds(1)) {
      if (now_ < pace.due()) continue;
      pace.sent(bytes, now_);
      ++sent;
    }
    return static_cast<double>(sent * bytes) / std::chrono::duration<double>(time).count();
  }
  void pause(Duration time) { now_ += time; }
  void mark() { pace.marked(now_); }
  Time now() const { return now_; }

  Pace pace;
  std::size_t bytes = kBytes;  // of each packet

 private:
  Time now_{std::chrono::seconds(1)};
};

TEST(Pace, HoldsNoPacketBackWithoutCnps) {
  Eager eager;
  EXPECT_NEAR(eager.send_for(milliseconds(10)), kGigabyte, 0);
  EXPECT_EQ(eager.pace.limit(), 0);
}

TEST(Pace, FallsBelowTheRateThatWasTooMuch) {
  Eager eager;
  eager.send_for(milliseconds(1));
  eager.mark();
  EXPECT_NEAR(eager.pace.limit(), 0.7 * kGigabyte, 0.01 * kGigabyte);
  EXPECT_NEAR(eager.send_for(microseconds(99)), 0.7 * kGigabyte, 0.02 * kGigabyte);
}

TEST(Pace, KnowsTheRateOfABurstThatHasJustBegun) {
  Eager eager;
  eager.send_for(milliseconds(1));
  eager.pause(std::chrono::seconds(1));
  eager.send_for(microseconds(80));
  eager.mark();
  EXPECT_GT(eager.pace.limit(), 0.5 * kGigabyte);
}

TEST(Pace, FallsOnceInAPeriodHoweverManyCnpsArrive) {
  Eager eager;
  eager.send_for(milliseconds(1));
  eager.mark();
  const double once = eager.pace.limit();
  eager.pause(microseconds(99));
  eager.mark();
  EXPECT_EQ(eager.pace.limit(), once);
  eager.pause(microseconds(1));
  eager.mark();
  EXPECT_LT(eager.pace.limit(), once);
}

TEST(Pace, KeepsALeast) {
  Eager eager;
  for (int i = 0; i < 1000; ++i) {
    eager.send_for(microseconds(100));
    eager.mark();
  }
  EXPECT_NEAR(eager.pace.limit(), 8e6, 1e6);
  EXPECT_NEAR(eager.send_for(microseconds(99)), 8e6, 1.1e7);
}

TEST(Pace, ComesBackQuicklyToWhereItWasAndSlowlyBeyond) {
  Eager eager;
  eager.send_for(milliseconds(1));
  eager.mark();
  eager.send_for(microseconds(401));
  EXPECT_NEAR(eager.pace.limit(), kGigabyte, 0.05 * kGigabyte);
  eager.send_for(milliseconds(1));
  EXPECT_NEAR(eager.pace.limit(), 1.1 * kGigabyte, 0.05 * kGigabyte);
  eager.bytes = 13 * kBytes;
  eager.send_for(milliseconds(200));
  EXPECT_EQ(eager.pace.limit(), 0);
}

// No CNP while nothing is sent says nothing about the path.
TEST(Pace, GoesOnWhereItWasAfterARest) {
  for (const Duration rest : {Duration(milliseconds(1)), Duration(std::chrono::hours(1))}) {
    Eager eager;
    eager.send_for(milliseconds(1));
    for (int i = 0; i < 20; ++i) {
      eager.mark();
      eager.send_for(microseconds(100));
    }
    const double before = eager.pace.limit();
    ASSERT_LT(before, 0.1 * kGigabyte);
    eager.pause(rest);
    const double rate = eager.send_for(microseconds(200));
    EXPECT_LT(rate, 2 * before + 0.02 * kGigabyte) << "one more step, and what slack allows";
    EXPECT_LT(eager.pace.limit(), before + 0.05 * kGigabyte);
    eager.send_for(milliseconds(20));
    EXPECT_NEAR(eager.send_for(milliseconds(1)), kGigabyte, 0.01 * kGigabyte)
        << "it is used, and no CNP arrives";
  }
}

// A sender that uses little of its rate does not show that there is room for all of it.
TEST(Pace, ComesBackAsFarAsItIsUsed) {
  Eager eager;
  eager.send_for(milliseconds(1));
  eager.mark();
  eager.send_for(milliseconds(1));
  const double before = eager.pace.limit();
  for (int i = 0; i < 1000; ++i) {
    eager.pause(microseconds(99));
    eager.send_for(microseconds(1));
  }
  EXPECT_GT(eager.pace.limit(), before);
  EXPECT_LT(eager.pace.limit(), 1.2 * before) << "a hundredth of a tenth of a second";
}

TEST(Pace, ARestBeforeAComplaintIsARestToo) {
  Eager eager;
  eager.send_for(milliseconds(1));
  eager.mark();
  const double before = eager.pace.limit();
  eager.pause(std::chrono::seconds(1));
  eager.mark();
  EXPECT_LT(eager.pace.limit(), before);
}

TEST(Pace, MakesUpForNoMoreThanALittleTime) {
  Eager eager;
  eager.send_for(milliseconds(1));
  for (int i = 0; i < 20; ++i) {
    eager.mark();
    eager.send_for(microseconds(100));
  }
  eager.mark();
  eager.pause(microseconds(99));
  std::size_t at_once = 0;
  for (; eager.pace.due() <= eager.now(); ++at_once) eager.pace.sent(kBytes, eager.now());
  const double allowed =
      eager.pace.limit() * std::chrono::duration<double>(Pace::kSlack).count() / kBytes;
  EXPECT_NEAR(static_cast<double>(at_once), allowed + 1, 1.5);
}

}  // namespace
}  // namespace weft::transport
