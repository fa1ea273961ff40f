// SPDX-License-Identifier: BSD-2-Clause
// Does an endpoint for datagrams take what is meant for it only, whatever strangers send?
#include <gtest/gtest.h>

#include "datagram_test_support.h"
#include "roce/route.h"
#include "wire/packet.h"

namespace weft::udp {
namespace {

using namespace testing;

// Makes packets by hand.
struct Stranger {
  os::UdpSocket socket = std::move(os::UdpSocket::bind(os::loopback(0), {.trains = false})).value();

  static wire::Packet headers(const DatagramPeer& to) {
    wire::Packet packet;
    packet.opcode =
        wire::opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
    packet.destination = roce::queue_pair_at(to.address.port());
    packet.queue_key = roce::kDatagramQueueKey;
    packet.source = 0x12'3456;
    return packet;
  }
  void send_raw(const DatagramPeer& to, const Bytes& bytes) {
    socket.send(to.address, {}, bytes, bytes.size());
  }
  // Base header to padding; the ICRC is added.
  void close_and_send(const DatagramPeer& to, Bytes bytes, std::uint32_t wrong = 0) {
    const auto crc = wire::icrc(roce::route_between(socket.address(), to.address), bytes);
    bytes.resize(bytes.size() + wire::kIcrcBytes);
    wire::store_icrc(bytes.data() + bytes.size() - wire::kIcrcBytes, crc ^ wrong);
    send_raw(to, bytes);
  }
  static Bytes packet(const wire::Packet& headers, std::size_t payload) {
    const std::size_t size = wire::header_bytes(headers);
    Bytes bytes(size + payload + wire::padding_of(payload));
    wire::write_headers(headers, payload, bytes.data());
    return bytes;
  }
};

struct DatagramHostile : ::testing::Test {
  DatagramPeer here{{.most_sources = 4}};
  DatagramPeer friendly;
  std::unique_ptr<link::Flow> flow = friendly.to(here.address);
  Stranger stranger;

  std::size_t heard_of(const os::SocketAddress& address) {
    std::size_t count = 0;
    here.heard();
    std::map<std::uint32_t, os::SocketAddress> names;
    for (const auto& [source, name] : here.log.opened) names[source] = name;
    for (const auto& message : here.log.messages) {
      if (names.at(message.arrival.source) == address) ++count;
    }
    return count;
  }
  void send_headers(const std::function<void(wire::Packet&)>& change, std::size_t payload = 8) {
    wire::Packet packet = Stranger::headers(here);
    change(packet);
    stranger.close_and_send(here, Stranger::packet(packet, payload));
    here.heard(++sent);
  }
  std::size_t sent = 0;
};

TEST(DatagramQueueKey, ThatOfAnotherEndpointIsDroppedAndCounted) {
  DatagramPeer keyed{{.queue_key = 0x2222'3333}};
  DatagramPeer same{{.queue_key = 0x2222'3333}};
  DatagramPeer other;
  EXPECT_TRUE(is_done(send(*other.to(keyed.address), Bytes(8))));
  EXPECT_EQ(keyed.heard(1), 0U);
  EXPECT_EQ(keyed.stats.of(Stat::kQkeyViolations), 1U);
  EXPECT_TRUE(is_done(send(*same.to(keyed.address), Bytes(8))));
  EXPECT_EQ(keyed.heard(2), 1U);
  EXPECT_TRUE(is_done(send(*keyed.to(other.address), Bytes(8))));
  EXPECT_EQ(other.heard(1), 0U);
}

TEST_F(DatagramHostile, APacketByHandIsTakenLikeOthers) {
  send_headers([](wire::Packet&) {});
  ASSERT_EQ(here.log.messages.size(), 1u);
  EXPECT_EQ(here.log.opened.at(0).second, stranger.socket.address());
  EXPECT_EQ(here.lost(), 0u);
}

TEST_F(DatagramHostile, PacketsForOtherEndpointsAreCountedByReason) {
  const Stats& stats = here.port->stats();
  send_headers([](wire::Packet& packet) { packet.queue_key ^= 1; });
  EXPECT_EQ(stats.of(Stat::kQkeyViolations), 1u);
  send_headers([](wire::Packet& packet) { packet.destination ^= 2; });
  EXPECT_EQ(stats.of(Stat::kUnknownQp), 1u);
  send_headers([](wire::Packet& packet) { packet.destination = wire::kMulticastQpn; });
  EXPECT_EQ(stats.of(Stat::kUnknownQp), 2u) << "not at the endpoint's own port";
  send_headers([](wire::Packet& packet) {
    packet.opcode =
        wire::opcode_of(wire::Transport::kReliableConnection, wire::Operation::kSendOnly);
  });
  EXPECT_EQ(stats.of(Stat::kUnknownQp), 3u);
  send_headers([](wire::Packet& packet) { packet.pkey = 0x8001; });
  EXPECT_EQ(stats.of(Stat::kPkeyViolations), 1u);
  send_headers([](wire::Packet&) {}, 4097);
  EXPECT_EQ(stats.of(Stat::kMalformedPackets), 1u) << "longer than any path MTU";
  stranger.close_and_send(here, Stranger::packet(Stranger::headers(here), 8), 1);
  stranger.send_raw(here, Bytes(3));
  EXPECT_EQ(here.heard(sent + 2), 0u);
  EXPECT_EQ(stats.of(Stat::kIcrcErrors), 2u);
  EXPECT_EQ(here.lost(), 8u);
  EXPECT_TRUE(here.log.opened.empty()) << "a sender of invalid packets is no source";
}

TEST_F(DatagramHostile, ChangedPacketsAndRandomOnesDisturbNoEndpoint) {
  std::mt19937_64 random(3);
  for (std::size_t i = 1; i <= 20'000; ++i) {
    Bytes bytes = Stranger::packet(Stranger::headers(here), random() % 200);
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 + random() % 255);
    }
    if (i % 2 == 0) {
      stranger.close_and_send(here, bytes);
    } else {
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
      stranger.send_raw(here, bytes);
    }
    if (i % 16 == 0) here.heard(i + sent);
    if (i % 256 != 0) continue;
    send(*flow, pattern(100, 7));
    ++sent;
  }
  here.heard(20'000 + sent);
  EXPECT_EQ(heard_of(friendly.address), sent);
  EXPECT_GE(here.port->stats().of(Stat::kIcrcErrors), 10'000u);
  EXPECT_EQ(here.log.messages.size() + here.lost(), 20'000 + sent);
  EXPECT_LE(here.log.opened.size(), 2u);
}

TEST_F(DatagramHostile, ManyAddressesAreForgottenAndNumbersStayFew) {
  for (int i = 0; i < 100; ++i) {
    Stranger another;
    another.close_and_send(here, Stranger::packet(Stranger::headers(here), 8));
    send(*flow, pattern(100, 7));
    here.heard(sent += 2);
  }
  EXPECT_EQ(here.log.messages.size(), 200u);
  EXPECT_EQ(here.log.opened.size() - here.log.closed.size(), 4u);
  for (const auto& [source, name] : here.log.opened) EXPECT_LT(source, 4u);
  EXPECT_EQ(heard_of(friendly.address), 100u) << "an active source is not forgotten";
}

}  // namespace
}  // namespace weft::udp
