// SPDX-License-Identifier: BSD-2-Clause
// Does a receive begin with the header from which its sender can be answered?
#include "wire/global_route.h"

#include <gtest/gtest.h>

#include "test_support.h"

namespace weft::wire {
namespace {

using testing::Bytes;
using testing::from_hex;

Bytes area_of(const Arrival& arrival, std::size_t datagram) {
  const auto area = global_route(arrival, datagram);
  return {area.begin(), area.end()};
}

// The header of RFC 1071's usual example, but for the payload's length.
TEST(GlobalRoute, OfIpv4IsTwentyZeroBytesAndAHeaderWithItsChecksum) {
  Arrival arrival;
  arrival.route.source = {std::byte{192}, std::byte{168}, std::byte{0}, std::byte{1}};
  arrival.route.destination = {std::byte{192}, std::byte{168}, std::byte{0}, std::byte{199}};
  arrival.hop_limit = 64;
  EXPECT_EQ(area_of(arrival, 115 - 28), from_hex("0000000000000000000000000000000000000000"
                                                 "45000073000040004011b861c0a80001c0a800c7"));
}

TEST(GlobalRoute, OfIpv6IsTheHeaderAsItCame) {
  Arrival arrival;
  arrival.route.v6 = true;
  for (std::size_t i = 0; i < 16; ++i) {
    arrival.route.source[i] = static_cast<std::byte>(0x10 + i);
    arrival.route.destination[i] = static_cast<std::byte>(0x20 + i);
  }
  arrival.traffic_class = 0xBA;
  arrival.flow_label = 0xFF2'3456;
  arrival.hop_limit = 3;
  EXPECT_EQ(area_of(arrival, 0x0200), from_hex("6ba2345602081103101112131415161718191a1b1c1d1e1f"
                                               "202122232425262728292a2b2c2d2e2f"));
}

TEST(GlobalRoute, OfIpv4TellsTypeOfServiceAndTimeToLive) {
  Arrival arrival;
  arrival.traffic_class = 0xC3;
  arrival.hop_limit = 7;
  const Bytes area = area_of(arrival, 100);
  EXPECT_EQ(area[21], std::byte{0xC3});
  EXPECT_EQ(area[28], std::byte{7});
  std::uint32_t sum = 0;
  for (std::size_t i = 20; i < 40; i += 2) {
    sum +=
        std::to_integer<std::uint32_t>(area[i]) << 8 | std::to_integer<std::uint32_t>(area[i + 1]);
  }
  EXPECT_EQ((sum & 0xFFFF) + (sum >> 16), 0xFFFFU) << "what everybody checks";
}

}  // namespace
}  // namespace weft::wire
