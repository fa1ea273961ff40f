// SPDX-License-Identifier: BSD-2-Clause
// Is a packet in a relay header what it was before, and are other relay headers refused?
#include "roce/relay_header.h"

#include <gtest/gtest.h>

#include "foreign_test_support.h"
#include "os/loopback_support.h"
#include "own_network.h"
#include "roce/packet_check.h"
#include "wire/icrc.h"

namespace weft::roce {
namespace {

using namespace testing;

constexpr std::uint16_t kPort = 40'000;
constexpr std::uint16_t kForeignPort = 50'000;

// A packet of a foreign peer, and the relay header in which it reaches an endpoint.
struct Handed {
  explicit Handed(const std::string& host) : peer{os::address_of(host)}, to(os::address_of(host)) {
    peer.from.set_port(kForeignPort);
    relay = ForeignHand::at_relay(to);
    to.set_port(kPort);
    packet = peer.packet(to, kPort, pattern(101, 1));
    bytes = peer.relay_header(to, kPort, packet, 0x2A);
  }
  // What an endpoint makes of those bytes, if they come from there.
  std::optional<RelayedPacket> open(const Bytes& relay_header, const os::SocketAddress& from) {
    return read_relayed({from, to, 0, 0, relay_header}, stats);
  }
  // The same bytes with another ICRC, which is right.
  Bytes closed(Bytes relay_header) const {
    const std::size_t covered = relay_header.size() - wire::kIcrcBytes;
    const auto crc = wire::icrc(route_between(relay, to), std::span(relay_header).first(covered));
    wire::store_icrc(relay_header.data() + covered, crc);
    return relay_header;
  }

  ForeignHand peer;
  os::SocketAddress relay;
  os::SocketAddress to;
  Bytes packet;
  Bytes bytes;
  Stats stats;
};

struct RelayHeader : ::testing::TestWithParam<const char*> {
  Handed handed{GetParam()};
  Stats& stats = handed.stats;
};

INSTANTIATE_TEST_SUITE_P(Families, RelayHeader, ::testing::Values("127.0.0.1", "::1"),
                         [](const auto& info) { return info.index == 0 ? "IPv4" : "IPv6"; });

TEST_P(RelayHeader, GivesBackWhatWasPutIn) {
  const auto opened = handed.open(handed.bytes, handed.relay);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->from, handed.peer.from);
  EXPECT_EQ(opened->to, handed.relay);
  EXPECT_EQ(opened->traffic_class, 0x2A);
  EXPECT_TRUE(std::ranges::equal(opened->bytes, handed.packet));
  EXPECT_EQ(addressee(opened->datagram(), queue_pair_at(kPort)), handed.to);
  EXPECT_EQ(stats.dropped(), 0U);
}

TEST_P(RelayHeader, ThePacketsOwnChecksumHolds) {
  const auto opened = handed.open(handed.bytes, handed.relay);
  ASSERT_TRUE(opened);
  wire::Packet packet;
  EXPECT_TRUE(PacketCheck(nullptr).read_foreign(opened->datagram(), packet, stats));
  EXPECT_EQ(packet.source, ForeignHand::kQueuePair);
  EXPECT_TRUE(std::ranges::equal(packet.payload, pattern(101, 1)));
}

TEST_P(RelayHeader, TheLongestPacketFits) {
  const Bytes packet(wire::kMaxPacketBytes, std::byte{7});
  const Bytes bytes = handed.peer.relay_header(handed.to, kPort, packet);
  EXPECT_EQ(bytes.size(), kMaxRelayDatagram);
  const auto opened = handed.open(bytes, handed.relay);
  ASSERT_TRUE(opened);
  EXPECT_TRUE(std::ranges::equal(opened->bytes, packet));
}

TEST_P(RelayHeader, APacketLongerThanTheRoomIsNotWritten) {
  const Bytes packet(100, std::byte{7});
  const std::size_t whole = kRelayHeaderBytes + packet.size() + wire::kIcrcBytes;
  Bytes room(whole + 1, std::byte{0x55});
  const Bytes untouched = room;
  const os::Datagram datagram{handed.peer.from, handed.relay, 0, 0, packet};
  for (std::size_t length = 0; length < whole; ++length) {
    EXPECT_EQ(write_relayed(datagram, queue_pair_at(kPort), std::span(room).first(length)), 0U);
    ASSERT_TRUE(room == untouched) << length;
  }
  EXPECT_EQ(write_relayed(datagram, queue_pair_at(kPort), std::span(room).first(whole)), whole);
  EXPECT_EQ(room.back(), untouched.back());
}

TEST_P(RelayHeader, OnlyTheHolderOfTheDoorIsBelieved) {
  os::SocketAddress another_port = handed.relay;
  another_port.set_port(wire::kUdpPort + 1);
  EXPECT_FALSE(handed.open(handed.bytes, another_port));
  EXPECT_EQ(stats.of(Stat::kForgedRelayHeaders), 1U);
  const bool v6 = handed.to.family() == AF_INET6;
  const auto another_host = ForeignHand::at_relay(os::address_of(v6 ? "::2" : "127.0.0.2"));
  EXPECT_FALSE(handed.open(handed.bytes, another_host));
  EXPECT_EQ(stats.of(Stat::kForgedRelayHeaders), 2U);
  EXPECT_EQ(stats.dropped(), 2U);
}

TEST_P(RelayHeader, AChangedByteIsNoticedWhereverItIs) {
  for (std::size_t i = 0; i < handed.bytes.size(); ++i) {
    if (i == 4) continue;  // routers may change those bits (FECN, BECN)
    Bytes changed = handed.bytes;
    changed[i] ^= std::byte{0x10};
    EXPECT_FALSE(handed.open(changed, handed.relay)) << "byte " << i;
  }
  EXPECT_EQ(stats.of(Stat::kIcrcErrors), handed.bytes.size() - 1);
}

TEST_P(RelayHeader, OneThatWasCutOffIsRefused) {
  for (std::size_t length = 0; length < handed.bytes.size(); ++length) {
    Bytes cut(handed.bytes.begin(), handed.bytes.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_FALSE(handed.open(cut, handed.relay)) << length << " bytes";
    // With a right checksum it is a relay header with less in it, or none.
    if (length < wire::kBthBytes + wire::kIcrcBytes) continue;
    cut = handed.closed(cut);
    const auto opened = handed.open(cut, handed.relay);
    EXPECT_EQ(opened.has_value(), length > kRelayHeaderBytes + wire::kIcrcBytes) << length;
    if (!opened) continue;
    wire::Packet packet;
    EXPECT_FALSE(PacketCheck(nullptr).read_foreign(opened->datagram(), packet, stats)) << length;
  }
}

TEST_P(RelayHeader, OneWithinAnotherIsRefused) {
  const Bytes twice = handed.peer.relay_header(handed.to, kPort, handed.bytes);
  EXPECT_FALSE(handed.open(twice, handed.relay));
  EXPECT_EQ(stats.of(Stat::kMalformedPackets), 1U);
}

TEST_P(RelayHeader, AnotherVersionIsRefused) {
  Bytes later = handed.bytes;
  later[wire::kBthBytes] = std::byte{2};
  EXPECT_FALSE(handed.open(handed.closed(later), handed.relay));
  EXPECT_EQ(stats.of(Stat::kMalformedPackets), 1U);
}

TEST_P(RelayHeader, APacketThatWasForAnotherAddressOrFromAnotherPeerShows) {
  // A relay header cannot claim this without a wrong checksum of the packet.
  for (std::size_t at = wire::kBthBytes + 2; at < kRelayHeaderBytes; ++at) {
    Bytes other = handed.bytes;
    other[at] ^= std::byte{1};
    other = handed.closed(other);
    const auto opened = handed.open(other, handed.relay);
    ASSERT_TRUE(opened);
    const bool counts = handed.to.family() == AF_INET6 || at < wire::kBthBytes + 8;
    wire::Packet packet;
    EXPECT_EQ(PacketCheck(nullptr).read_foreign(opened->datagram(), packet, stats), !counts) << at;
  }
}

}  // namespace
}  // namespace weft::roce
