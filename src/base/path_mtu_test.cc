// SPDX-License-Identifier: BSD-2-Clause
// How many bytes does one packet carry?
#include "base/path_mtu.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(PathMtu, IsWhatRoceUsesOnUsualInterfaces) {
  EXPECT_EQ(path_mtu(65536), 4096U) << "loopback";
  EXPECT_EQ(path_mtu(9000), 4096U) << "jumbo frames";
  EXPECT_EQ(path_mtu(1500), 1024U) << "Ethernet";
  EXPECT_EQ(path_mtu(1280), 1024U) << "the least of IPv6";
}

TEST(PathMtu, LeavesRoomForTheHeaders) {
  EXPECT_EQ(path_mtu(4096 + 92), 4096U);
  EXPECT_EQ(path_mtu(4096 + 91), 2048U);
  EXPECT_EQ(path_mtu(256 + 92), 256U);
}

TEST(PathMtu, IsNothingWhereTheSmallestDoesNotFit) {
  EXPECT_EQ(path_mtu(256 + 91), 0U);
  EXPECT_EQ(path_mtu(68), 0U) << "the least of IPv4";
  EXPECT_EQ(path_mtu(0), 0U);
}

}  // namespace
}  // namespace weft
