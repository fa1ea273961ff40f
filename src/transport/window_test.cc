// SPDX-License-Identifier: BSD-2-Clause
// How many packets may be in flight?
#include "transport/window.h"

#include <gtest/gtest.h>

#include "wire/packet.h"

namespace weft::transport {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

const Time kBegin{std::chrono::seconds(1)};

Settings widest(unsigned max_window) {
  Settings settings;
  settings.path_mtu = wire::kMaxReliableDatagramMtu;
  settings.max_window = max_window;
  return settings;
}

// As if whole windows were acknowledged.
void fill(Window& window, int times) {
  for (int i = 0; i < times; ++i) window.acknowledged(window.size(), true);
}

TEST(Window, BeginsSmallAndGrowsToItsLimit) {
  Window window(widest(512));
  EXPECT_EQ(window.size(), 64U);
  window.acknowledged(64, true);
  EXPECT_EQ(window.size(), 128U);
  fill(window, 10);
  EXPECT_EQ(window.size(), 512U);
}

TEST(Window, NeverExceedsItsLimit) {
  for (const unsigned most : {1U, 2U, 7U, 8U, 9U, 64U, 65U}) {
    Window window(widest(most));
    EXPECT_EQ(window.size(), std::min(most, 64U));
    fill(window, 5);
    window.lost(kBegin);
    fill(window, 5);
    window.silent();
    EXPECT_EQ(window.size(), std::min(most, 8U));
    fill(window, 100);
    EXPECT_EQ(window.size(), most);
  }
}

TEST(Window, WaitsForTheFirstAnswerAsLongAsTheHandshakeSuggests) {
  Settings settings = widest(512);
  settings.ack_timeout = milliseconds(1000);
  EXPECT_EQ(Window(settings).rto(), milliseconds(20));
  settings.first_round_trip = microseconds(50);
  EXPECT_EQ(Window(settings).rto(), milliseconds(20));
  settings.first_round_trip = milliseconds(200);
  EXPECT_EQ(Window(settings).rto(), milliseconds(600));
  settings.first_round_trip = milliseconds(400);
  EXPECT_EQ(Window(settings).rto(), milliseconds(1000));
}

TEST(Window, GrowsOnlyWhenItHeldASenderBack) {
  Window window(widest(512));
  for (int i = 0; i < 100; ++i) window.acknowledged(64, false);
  EXPECT_EQ(window.size(), 64U);
}

TEST(Window, ShrinksWithLossAndMarksThenGrowsSlowly) {
  for (const bool marks : {false, true}) {
    Window window(widest(512));
    fill(window, 5);
    if (marks) {
      window.marked(kBegin);
    } else {
      window.lost(kBegin);
    }
    const unsigned shrunk = window.size();
    EXPECT_EQ(shrunk, 358U);
    window.acknowledged(window.size(), true);
    EXPECT_EQ(window.size(), shrunk + 1);
  }
}

TEST(Window, GrowsFastAgainWhenASecondHasPassedWithoutAMark) {
  Window window(widest(512));
  Time now = kBegin;
  for (int i = 0; i < 100; ++i) window.marked(now += milliseconds(10));
  EXPECT_EQ(window.size(), 8U);
  fill(window, 1);
  EXPECT_EQ(window.size(), 9U);
  window.timed(microseconds(50), now + milliseconds(999));
  fill(window, 1);
  EXPECT_EQ(window.size(), 10U);
  window.timed(microseconds(50), now + milliseconds(1000));
  fill(window, 6);
  EXPECT_EQ(window.size(), 512U);
}

TEST(Window, RemembersLossLongerThanMarks) {
  Window window(widest(512));
  Time now = kBegin;
  for (int i = 0; i < 100; ++i) window.marked(now += milliseconds(10));
  window.lost(now += milliseconds(10));
  window.timed(microseconds(50), now + std::chrono::seconds(2));
  fill(window, 1);
  EXPECT_EQ(window.size(), 9U);
}

// Otherwise a flow of small packets would get a smaller share of a lossy path.
TEST(Window, GrowsByAsManyBytesWhateverThePackets) {
  Settings settings = widest(512);
  settings.path_mtu = wire::kMaxReliableDatagramMtu / 8;
  Window window(settings);
  fill(window, 5);
  window.lost(kBegin);
  EXPECT_EQ(window.size(), 358U);
  window.acknowledged(358, true);
  EXPECT_EQ(window.size(), 366U);
  for (int i = 1; i < 6; ++i) window.lost(kBegin + std::chrono::seconds(i));
  EXPECT_EQ(window.size(), 61U);
  window.acknowledged(61, true);
  EXPECT_EQ(window.size(), 69U);
  window.carries(wire::kMaxReliableDatagramMtu);
  window.acknowledged(69, true);
  EXPECT_EQ(window.size(), 70U);
  window.carries(wire::kMaxReliableDatagramMtu / 8);
  for (int i = 6; i < 14; ++i) window.lost(kBegin + std::chrono::seconds(i));
  EXPECT_EQ(window.size(), 8U);
  window.acknowledged(8, true);
  EXPECT_EQ(window.size(), 10U) << "a quarter";
}

TEST(Window, ShrinksOncePerRoundTrip) {
  Window window(widest(512));
  window.timed(milliseconds(1), kBegin);
  window.lost(kBegin);
  const unsigned once = window.size();
  window.lost(kBegin + microseconds(999));
  window.marked(kBegin + microseconds(999));
  EXPECT_EQ(window.size(), once);
  window.lost(kBegin + milliseconds(1));
  EXPECT_LT(window.size(), once);
}

TEST(Window, KeepsALeast) {
  Window window(widest(512));
  for (int i = 0; i < 100; ++i) window.lost(kBegin + std::chrono::seconds(i));
  EXPECT_EQ(window.size(), 8U);
}

TEST(Window, StartsOverAfterSilenceAndGrowsFastToHalfOfWhatItWas) {
  Window window(widest(512));
  fill(window, 5);
  window.silent();
  EXPECT_EQ(window.size(), 8U);
  fill(window, 5);
  EXPECT_EQ(window.size(), 256U);
  window.acknowledged(256, true);
  EXPECT_EQ(window.size(), 257U);
}

TEST(Window, ShrinksWhenAnswersTakeMuchLongerThanTheyCould) {
  Window window(widest(512));
  window.timed(microseconds(100), kBegin);
  window.timed(microseconds(300), kBegin + milliseconds(1));
  EXPECT_EQ(window.size(), 64U);
  for (int i = 0; i < 8; ++i) window.timed(milliseconds(5), kBegin + milliseconds(2));
  EXPECT_EQ(window.size(), 54U);
}

TEST(Window, SmoothsTheRoundTrip) {
  Window window(widest(512));
  EXPECT_EQ(window.round_trip(), Duration::zero());
  window.timed(microseconds(800), kBegin);
  EXPECT_EQ(window.round_trip(), microseconds(800));
  window.timed(microseconds(1600), kBegin);
  EXPECT_EQ(window.round_trip(), microseconds(900));
  window.timed(microseconds(100), kBegin);
  EXPECT_EQ(window.round_trip(), microseconds(800));
}

TEST(Window, IsPatientForAFewDeviations) {
  Window window(widest(512));
  EXPECT_EQ(window.rto(), milliseconds(20)) << "of an unknown packet";
  window.timed(milliseconds(2), kBegin);
  EXPECT_EQ(window.rto(), milliseconds(2 + 4));
  window.timed(milliseconds(10), kBegin);
  EXPECT_EQ(window.rto(), milliseconds(3) + 4 * microseconds(2750));
}

TEST(Window, IsNeverMorePatientThanTheTimeoutNorLessThanAMillisecond) {
  Window window(widest(512));
  window.timed(microseconds(5), kBegin);
  EXPECT_EQ(window.rto(), milliseconds(1));
  window.timed(std::chrono::seconds(5), kBegin);
  EXPECT_EQ(window.rto(), Settings().ack_timeout);
}

TEST(Window, TakesATimeoutBelowAMillisecondAsItIs) {
  Settings settings;
  for (const std::uint8_t code : {1, 5, 7}) {
    settings.ack_timeout = ack_timeout(code);
    Window window(settings);
    EXPECT_EQ(window.rto(), settings.ack_timeout);
    window.timed(microseconds(4), kBegin);
    EXPECT_EQ(window.rto(), settings.ack_timeout);
  }
}

}  // namespace
}  // namespace weft::transport
