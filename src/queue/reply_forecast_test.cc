// SPDX-License-Identifier: BSD-2-Clause
// Does an acknowledgement wait where a request follows, and nowhere else?
#include "reply_forecast.h"

#include <gtest/gtest.h>

namespace weft::queue {
namespace {

using std::chrono::microseconds;

constexpr auto kTurn = microseconds(10);

// Each acknowledgement is followed by a request.
void learn(ReplyForecast& forecast, Time& now, unsigned turns) {
  for (unsigned i = 0; i < turns; ++i) {
    EXPECT_FALSE(forecast.waits(true, now += kTurn)) << i;
    EXPECT_TRUE(forecast.expects_post());
    forecast.posted(now += kTurn);
    EXPECT_FALSE(forecast.expects_post());
  }
}

TEST(ReplyForecast, AnAcknowledgementWaitsAfterSeveralReplies) {
  ReplyForecast forecast;
  Time now{};
  learn(forecast, now, ReplyForecast::kSure);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(forecast.waits(true, now += kTurn)) << i;
    EXPECT_TRUE(forecast.waits(true, now += kTurn)) << "a poll in between";
    EXPECT_EQ(forecast.due(), now - kTurn + ReplyForecast::kWait);
    forecast.posted(now += kTurn);
    EXPECT_EQ(forecast.due(), Time::max());
  }
}

TEST(ReplyForecast, ItLeavesAloneWhereNoneFollowsInTime) {
  ReplyForecast forecast;
  Time now{};
  learn(forecast, now, ReplyForecast::kSure);
  ASSERT_TRUE(forecast.waits(true, now));
  EXPECT_FALSE(forecast.waits(true, now += ReplyForecast::kWait));
  EXPECT_FALSE(forecast.expects_post());
  learn(forecast, now, ReplyForecast::kSure);
  EXPECT_TRUE(forecast.waits(true, now));
}

TEST(ReplyForecast, ALateReplyIsNone) {
  ReplyForecast forecast;
  Time now{};
  learn(forecast, now, ReplyForecast::kSure - 1);
  ASSERT_FALSE(forecast.waits(true, now));
  forecast.posted(now += ReplyForecast::kWait);
  learn(forecast, now, ReplyForecast::kSure);
  EXPECT_TRUE(forecast.waits(true, now));
}

TEST(ReplyForecast, TwoAcknowledgementsWithoutARequestBeginAnew) {
  ReplyForecast forecast;
  Time now{};
  learn(forecast, now, ReplyForecast::kSure - 1);
  EXPECT_FALSE(forecast.waits(true, now += kTurn));
  learn(forecast, now, ReplyForecast::kSure);
  EXPECT_TRUE(forecast.waits(true, now));
}

TEST(ReplyForecast, AnotherAnswerLeavesAtOnce) {
  ReplyForecast forecast;
  Time now{};
  learn(forecast, now, ReplyForecast::kSure);
  EXPECT_FALSE(forecast.waits(false, now));
  EXPECT_FALSE(forecast.expects_post());
  ASSERT_TRUE(forecast.waits(true, now)) << "it tells nothing of requests";
  EXPECT_FALSE(forecast.waits(false, now)) << "and takes along what waited";
  EXPECT_EQ(forecast.due(), Time::max());
}

}  // namespace
}  // namespace weft::queue
