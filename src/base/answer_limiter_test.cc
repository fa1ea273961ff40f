// SPDX-License-Identifier: BSD-2-Clause
// Is there a limit to answers for each source and for all, in each second?
#include "base/answer_limiter.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

using std::chrono::milliseconds;
constexpr Time kStart{std::chrono::hours(1)};

unsigned taken(AnswerLimiter& limiter, std::uint64_t source, Time now, unsigned asked = 10'000) {
  unsigned count = 0;
  for (unsigned i = 0; i < asked; ++i) count += limiter.take(source, now);
  return count;
}

TEST(AnswerLimiter, GivesEachSourceItsShareOfASecond) {
  AnswerLimiter limiter({100, 7});
  EXPECT_EQ(taken(limiter, 1, kStart), 7);
  EXPECT_EQ(taken(limiter, 2, kStart), 7);
  EXPECT_EQ(taken(limiter, 1, kStart + milliseconds(999)), 0);
  EXPECT_EQ(taken(limiter, 1, kStart + milliseconds(1000)), 7);
}

TEST(AnswerLimiter, GivesAllSourcesTogetherTheirs) {
  AnswerLimiter limiter({100, 7});
  unsigned count = 0;
  for (std::uint64_t source = 0; source < 50; ++source) count += taken(limiter, source, kStart);
  EXPECT_EQ(count, 100);
}

TEST(AnswerLimiter, TakesNothingFromOthersForWhatItRefuses) {
  AnswerLimiter limiter({100, 7});
  taken(limiter, 1, kStart, 1'000'000);
  EXPECT_EQ(taken(limiter, 2, kStart), 7);
}

}  // namespace
}  // namespace weft
