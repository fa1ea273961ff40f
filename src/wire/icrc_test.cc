// SPDX-License-Identifier: BSD-2-Clause
// Is the invariant CRC the one that others compute, and does a change show?
#include "wire/icrc.h"

#include <gtest/gtest.h>

#include <random>

#include "test_support.h"
#include "wire/packet.h"

namespace weft::wire {
namespace {

using testing::Bytes;
using testing::from_hex;

Route route_of(const char* source, const char* destination, std::uint16_t source_port) {
  Route route;
  const Bytes from = from_hex(source);
  const Bytes to = from_hex(destination);
  route.v6 = from.size() == 16;
  std::copy(from.begin(), from.end(), route.source.begin());
  std::copy(to.begin(), to.end(), route.destination.begin());
  route.source_port = source_port;
  route.destination_port = kUdpPort;
  return route;
}

const char kSend[] = "2460ffff000000d300cf17104630818be28935d90e9a95505401be885e500000";
const char kEcnByte[] = "8100ffff400001180000000000000000000000000000000000000000";

// Published vectors: what the authors of other implementations say that hardware sends.
TEST(Icrc, IsWhatOthersComputeOverIpv4) {
  const Route soft = route_of("c0a80007", "c0a80007", 0xC000);
  EXPECT_EQ(icrc(soft, from_hex(kSend), {1144, 0x4000}), 0xF353'F378u);
  const Route hard = route_of("0a001101", "0a001201", 0);
  EXPECT_EQ(icrc(hard, from_hex(kEcnByte), {0x718C, 0x4000}), 0x2A00'FD82u);
}

TEST(Icrc, IsWhatOthersComputeOverIpv6) {
  const Route route =
      route_of("20220000000000000000000000001023", "20230000000000000000000000001024", 0xC000);
  EXPECT_EQ(icrc(route, from_hex(kSend)), 0x3B74'5B3Eu);
}

Bytes with_icrc(const Route& route, Bytes covered, Ipv4Words words = {}) {
  const std::uint32_t crc = icrc(route, covered, words);
  covered.resize(covered.size() + kIcrcBytes);
  store_icrc(covered.data() + covered.size() - kIcrcBytes, crc);
  return covered;
}

TEST(Icrc, OfHeadersAndPayloadApartIsThatOfTheWholePacket) {
  const Route route = route_of("0a001101", "0a001201", 50000);
  const Bytes whole = from_hex(kSend);
  const std::span<const std::byte> all(whole);
  EXPECT_EQ(icrc(route, all.first(kBthBytes), all.subspan(kBthBytes, 18)), icrc(route, whole));
}

TEST(RouteCrc, IsTheSameForEveryPacketInWhateverOrder) {
  std::mt19937 random(7);
  for (const char* host : {"0a001101", "20220000000000000000000000001023"}) {
    const Route route = route_of(host, host, 50000);
    RouteCrc crc(route);
    for (int i = 0; i < 3000; ++i) {
      Bytes packet(kBthBytes + (i % 3 == 0 ? 40 : random() % 60));
      for (auto& byte : packet) byte = static_cast<std::byte>(random());
      const auto identification = static_cast<std::uint16_t>(random() % (i % 5 == 0 ? 65536 : 66));
      const Ipv4Words words{identification, static_cast<std::uint16_t>(i % 7 == 0 ? 0 : 0x4000)};
      ASSERT_EQ(crc.of(packet, words), icrc(route, packet, words)) << i;
    }
  }
}

TEST(Icrc, DoesNotCoverWhatRoutersMayChange) {
  const Route route = route_of("0a001101", "0a001201", 50000);
  Bytes marked = from_hex(kSend);
  marked[4] = std::byte{0xC0};  // congestion
  EXPECT_EQ(icrc(route, marked), icrc(route, from_hex(kSend)));
}

TEST(CheckIcrc, TellsWhatTheSenderPutIntoTheIpv4Header) {
  const Route route = route_of("0a001101", "0a001201", 50000);
  for (const std::uint16_t identification : {0, 1, 127, 0x718C, 0xFFFF}) {
    for (const std::uint16_t fragment : {0x4000, 0}) {
      const Ipv4Words words{identification, fragment};
      const Bytes packet = with_icrc(route, from_hex(kSend), words);
      EXPECT_EQ(check_icrc(route, packet), words);
      EXPECT_EQ(check_icrc(route, packet, words), words);
    }
  }
}

TEST(CheckIcrc, TellsItForPacketsOfEveryLength) {
  const Route route = route_of("0a001101", "0a001201", 50000);
  std::mt19937 random(1);
  for (std::size_t length = kBthBytes; length < 4200; length += 1 + length / 16) {
    Bytes covered(length);
    for (std::byte& byte : covered) byte = static_cast<std::byte>(random());
    const Ipv4Words words{static_cast<std::uint16_t>(random()), 0x4000};
    EXPECT_EQ(check_icrc(route, with_icrc(route, covered, words)), words) << length;
  }
}

// Any single changed bit: none is taken for another identification, as the flags would not fit.
TEST(CheckIcrc, NoticesEveryChangedBit) {
  const Route v4 = route_of("0a001101", "0a001201", 50000);
  const Route v6 =
      route_of("20220000000000000000000000001023", "20230000000000000000000000001024", 50000);
  for (const Route& route : {v4, v6}) {
    const Bytes packet = with_icrc(route, from_hex(kSend));
    ASSERT_TRUE(check_icrc(route, packet).has_value());
    for (std::size_t bit = 0; bit < 8 * packet.size(); ++bit) {
      Bytes changed = packet;
      changed[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      const auto found = check_icrc(route, changed);
      EXPECT_EQ(found.has_value(), bit / 8 == 4) << "byte " << bit / 8 << " is covered";
    }
    Route elsewhere = route;
    elsewhere.source_port = 50001;
    EXPECT_FALSE(check_icrc(elsewhere, packet).has_value());
  }
}

TEST(CheckIcrc, RefusesWhatIsTooShortToHaveOne) {
  const Route route = route_of("0a001101", "0a001201", 50000);
  for (std::size_t length = 0; length < kBthBytes + kIcrcBytes; ++length) {
    EXPECT_FALSE(check_icrc(route, Bytes(length)).has_value());
  }
}

}  // namespace
}  // namespace weft::wire
