// SPDX-License-Identifier: BSD-2-Clause
// Do honest requests find a place beside any number of forged ones?
#include "request_limiter.h"

#include <gtest/gtest.h>

#include "test_support.h"

namespace weft::cm {
namespace {

using namespace testing;

constexpr Time kStart{seconds(1000)};
constexpr RequestRates kRates{100, 10};

// How many of so many forged requests are taken, each from another source.
unsigned taken(RequestLimiter& limiter, Time now, std::uint32_t first, unsigned count = 10'000) {
  unsigned sum = 0;
  for (std::uint32_t i = first; i < first + count; ++i) sum += limiter.take(spoofed(i), i, now);
  return sum;
}

TEST(RequestLimiter, TakesAnyNumberWhoseConnectionsAreEstablished) {
  RequestLimiter limiter(kRates, 1);
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(limiter.take(spoofed(i), i, kStart));
    if (i % 2 == 0) {
      limiter.give_back(1);
    } else {
      limiter.returned()->give_back();
    }
  }
}

TEST(RequestLimiter, TakesFewOfAFlood) {
  RequestLimiter limiter(kRates, 1);
  EXPECT_EQ(taken(limiter, kStart, 0), 51);
  EXPECT_TRUE(limiter.is_short());
  EXPECT_EQ(taken(limiter, kStart + seconds(1), 10'000), 10);
  EXPECT_EQ(taken(limiter, kStart + seconds(60), 20'000), 51) << "credits do not add up";
}

TEST(RequestLimiter, TakesARepeatedRequestDuringAFlood) {
  RequestLimiter limiter(kRates, 1);
  taken(limiter, kStart, 0);
  EXPECT_FALSE(limiter.take(remote(9), 7, kStart));
  taken(limiter, kStart + milliseconds(2), 10'000, 500);
  EXPECT_FALSE(limiter.take(remote(9), 8, kStart + milliseconds(2))) << "another request";
  EXPECT_FALSE(limiter.take(remote(8), 7, kStart + milliseconds(2))) << "another source";
  EXPECT_TRUE(limiter.take(remote(9), 7, kStart + milliseconds(2)));
}

TEST(RequestLimiter, TakesFewOfAFloodOfRepeatedRequests) {
  RequestLimiter limiter(kRates, 1);
  unsigned count = 0;
  for (std::uint32_t i = 0; i < 10'000; ++i) count += taken(limiter, kStart, i / 2, 1);
  EXPECT_EQ(count, 100);
  EXPECT_EQ(taken(limiter, kStart + seconds(1), 4999, 1), 1) << "some come back with the time";
}

TEST(RequestLimiter, TakesWhatComesThroughTheMailbox) {
  RequestLimiter limiter(kRates, 1);
  taken(limiter, kStart, 0);
  Remote neighbour = remote(9);
  neighbour.carrier = Carrier::kMailbox;
  EXPECT_TRUE(limiter.take(neighbour, 7, kStart));
}

}  // namespace
}  // namespace weft::cm
