// SPDX-License-Identifier: BSD-2-Clause
// Do packet numbers keep their order where they wrap around?
#include "base/psn.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Psn, HasTwentyFourBits) {
  EXPECT_EQ(Psn(0x1234'5678).value(), 0x34'5678u);
  EXPECT_EQ(Psn(0xFF'FFFF).after(1), Psn(0));
  EXPECT_EQ(Psn(0).after(-1), Psn(0xFF'FFFF));
  EXPECT_EQ(Psn(5).after(1 << 24), Psn(5));
}

TEST(Psn, IsBeforeOneThatIsUpToHalfTheRangeAhead) {
  for (const std::uint32_t start : {0u, 1u, 0x7F'FFFFu, 0x80'0000u, 0xFF'FFFEu, 0xFF'FFFFu}) {
    const Psn first(start);
    for (const std::int32_t ahead : {1, 2, 1000, (1 << 23) - 1}) {
      EXPECT_TRUE(first.before(first.after(ahead))) << start << " + " << ahead;
      EXPECT_FALSE(first.after(ahead).before(first)) << start << " + " << ahead;
      EXPECT_EQ(first.after(ahead).since(first), ahead);
      EXPECT_EQ(first.since(first.after(ahead)), -ahead);
    }
    EXPECT_FALSE(first.before(first));
  }
}

}  // namespace
}  // namespace weft
