// SPDX-License-Identifier: BSD-2-Clause
// Are datagrams delivered, and sent, whatever ECN marks and CNPs say?
#include <gtest/gtest.h>

#include "datagram_test_support.h"
#include "roce/route.h"
#include "wire/packet.h"

namespace weft::udp {
namespace {

using namespace testing;

constexpr std::uint8_t kMarked = 3;       // as a router leaves a packet that waited
constexpr std::uint8_t kMayBeMarked = 2;  // as it was before
constexpr std::size_t kFull = 4096;

os::UdpSocket socket_of(std::uint8_t traffic_class) {
  return std::move(os::UdpSocket::bind(os::loopback(0), {.traffic_class = traffic_class})).value();
}

// Makes packets by hand, and reads the answers.
struct Hand {
  explicit Hand(std::uint8_t traffic_class) : socket(socket_of(traffic_class)) {}

  void send(const DatagramPeer& to, const wire::Packet& headers, std::size_t payload) {
    const std::size_t size = wire::header_bytes(headers);
    Bytes bytes(size + payload);
    wire::write_headers(headers, payload, bytes.data());
    const auto crc = wire::icrc(roce::route_between(socket.address(), to.address), bytes);
    bytes.resize(bytes.size() + wire::kIcrcBytes);
    wire::store_icrc(bytes.data() + bytes.size() - wire::kIcrcBytes, crc);
    socket.send(to.address, {}, bytes, bytes.size());
  }
  void send_datagram(const DatagramPeer& to, std::uint32_t queue_key = roce::kDatagramQueueKey) {
    wire::Packet packet;
    packet.opcode =
        wire::opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
    packet.destination = roce::queue_pair_at(to.address.port());
    packet.queue_key = queue_key;
    packet.source = 0x12'3456;
    send(to, packet, 8);
  }
  void send_cnp(const DatagramPeer& to, std::uint32_t queue_pair) {
    wire::Packet packet;
    packet.opcode = wire::kCongestionNotification;
    packet.becn = true;
    packet.destination = queue_pair;
    send(to, packet, 16);
  }
  // How many packets have arrived.
  std::size_t heard() const {
    std::size_t count = 0;
    os::UdpBatch batch(4);
    while (socket.receive(batch) == 0 && !batch.arrivals().empty()) {
      batch.for_each([&](const os::Datagram&) { ++count; });
    }
    return count;
  }
  os::UdpSocket socket;
};

TEST(DatagramCongestion, AMarkedDatagramIsDeliveredAndCausesNoCnp) {
  DatagramPeer peer;
  Hand marked(kMarked);
  Hand unmarked(kMayBeMarked);
  marked.send_datagram(peer);
  unmarked.send_datagram(peer);
  ASSERT_EQ(peer.heard(2), 2u) << "they are delivered all the same";
  EXPECT_EQ(marked.heard(), 0u);
  EXPECT_EQ(unmarked.heard(), 0u);
}

TEST(DatagramCongestion, DatagramsForOtherEndpointsCauseNoCnp) {
  DatagramPeer peer;
  Hand marked(kMarked);
  marked.send_datagram(peer, roce::kDatagramQueueKey + 1);
  peer.heard(1);
  EXPECT_EQ(peer.port->stats().of(Stat::kQkeyViolations), 1u);
  EXPECT_EQ(marked.heard(), 0u);
}

TEST(DatagramCongestion, MarkedDatagramsToAGroupCauseNoCnp) {
  DatagramPeer a(socket_of(kMarked));
  DatagramPeer b;
  const os::SocketAddress group = os::address_of("239.255.7.10", a.address.port());
  const auto member = b.endpoint->join(group);
  const auto flow = a.endpoint->connect_group(group);
  ASSERT_TRUE(member && flow);
  ASSERT_TRUE(is_done(send(*flow.value(), Bytes(kFull))));
  ASSERT_EQ(b.heard(1), 1u);
  a.endpoint->poll(a.log);
  EXPECT_EQ(a.port->stats().dropped(), 0u);
}

// The source address of a CNP can be forged.
TEST(DatagramCongestion, CnpsAreCountedAndSlowNoSender) {
  DatagramPeer a;
  Hand peer(0);
  Hand stranger(0);
  const auto flow = a.to(peer.socket.address());
  const std::uint32_t own = roce::queue_pair_at(a.address.port());
  ASSERT_TRUE(is_done(send(*flow, Bytes(kFull))));
  for (int i = 0; i < 100; ++i) peer.send_cnp(a, own);
  for (int i = 0; i < 100; ++i) stranger.send_cnp(a, own);
  peer.send_cnp(a, own + 1);
  constexpr std::uint64_t kCnps = 201;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (a.port->stats().of(Stat::kUnknownFlow) < kCnps && std::chrono::steady_clock::now() < end) {
    a.endpoint->poll(a.log);
  }
  EXPECT_EQ(a.port->stats().of(Stat::kUnknownFlow), kCnps);
  EXPECT_TRUE(a.log.messages.empty());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(is_done(send(*flow, Bytes(kFull))));
}

}  // namespace
}  // namespace weft::udp
