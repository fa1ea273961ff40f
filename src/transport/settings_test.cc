// SPDX-License-Identifier: BSD-2-Clause
// What do the codes of timers mean?
#include "transport/settings.h"

#include <gtest/gtest.h>

namespace weft::transport {
namespace {

using std::chrono::microseconds;

// IBTA table 45, in units of 10 us.
TEST(Settings, RnrWaitsAreThoseOfTheTable) {
  constexpr int kTensOfMicroseconds[] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                         16,    24,   32,   48,    64,    96,    128,   192,
                                         256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                         4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};
  for (std::uint8_t code = 0; code < 32; ++code) {
    EXPECT_EQ(rnr_wait(code), microseconds(10) * kTensOfMicroseconds[code]) << int{code};
    EXPECT_EQ(rnr_wait(code | 0xE0), rnr_wait(code)) << "only five bits count";
  }
}

TEST(Settings, AckTimeoutsDoubleFromCodeToCode) {
  EXPECT_EQ(ack_timeout(0), Duration::max());
  EXPECT_EQ(ack_timeout(1), Duration(8192));
  EXPECT_EQ(ack_timeout(14), Duration(67'108'864));
  for (std::uint8_t code = 2; code < 32; ++code)
    EXPECT_EQ(ack_timeout(code), 2 * ack_timeout(static_cast<std::uint8_t>(code - 1)));
}

}  // namespace
}  // namespace weft::transport
