// SPDX-License-Identifier: BSD-2-Clause
// Is the sender of datagrams that met a queue told so, and does it slow down towards that peer
// only?
#include <gtest/gtest.h>

#include "datagram_test_support.h"
#include "os/event.h"
#include "roce/route.h"
#include "wire/packet.h"

namespace weft::udp {
namespace {

using namespace testing;
using std::chrono::milliseconds;

constexpr std::uint8_t kMarked = 3;       // as a router leaves a packet that waited
constexpr std::uint8_t kMayBeMarked = 2;  // as it was before
constexpr std::size_t kFull = 4096;

os::UdpSocket socket_of(std::uint8_t traffic_class) {
  return std::move(os::UdpSocket::bind(os::loopback(0), {.traffic_class = traffic_class})).value();
}

bool is_too_soon(const link::Outcome& outcome) {
  return outcome.state == link::Outcome::State::kTooSoon;
}

// Sends until `done` says so, or 20 seconds.
template <class Done>
bool send_until(link::Flow& flow, const std::function<void()>& meanwhile, Done done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < end) {
    if (done(send(flow, Bytes(kFull)))) return true;
    meanwhile();
  }
  return false;
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
  void send_datagram(const DatagramPeer& to, std::uint32_t source) {
    wire::Packet packet;
    packet.opcode =
        wire::opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
    packet.destination = roce::queue_pair_at(to.address.port());
    packet.queue_key = roce::kDatagramQueueKey;
    packet.source = source;
    send(to, packet, 8);
  }
  void send_notice(const DatagramPeer& to, std::uint32_t queue_pair) {
    wire::Packet packet;
    packet.opcode = wire::kCongestionNotification;
    packet.becn = true;
    packet.destination = queue_pair;
    send(to, packet, 16);
  }
  // What has come, if its ICRC is right.
  std::vector<wire::Packet> take() {
    std::vector<wire::Packet> packets;
    os::UdpBatch batch(4);
    while (socket.receive(batch) == 0 && !batch.arrivals().empty()) {
      batch.for_each([&](const os::Datagram& datagram) {
        wire::Packet packet;
        const bool right =
            wire::check_icrc(roce::route_between(datagram.from, datagram.to), datagram.bytes)
                .has_value();
        if (!right || wire::parse(datagram.bytes, packet) != wire::Malformed::kNone) return;
        packet.payload = {};
        packets.push_back(packet);
      });
    }
    return packets;
  }
  os::UdpSocket socket;
};

TEST(DatagramCongestion, OnlyTheSenderOfAMarkedDatagramGetsACnp) {
  DatagramPeer peer;
  Hand marked(kMarked);
  Hand unmarked(kMayBeMarked);
  marked.send_datagram(peer, 0x12'3456);
  unmarked.send_datagram(peer, 0x12'3457);
  ASSERT_EQ(peer.heard(2), 2u) << "they are delivered all the same";
  const auto told = marked.take();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].opcode, wire::kCongestionNotification);
  EXPECT_TRUE(told[0].becn);
  EXPECT_EQ(told[0].destination, 0x12'3456u);
  EXPECT_TRUE(unmarked.take().empty());
}

TEST(DatagramCongestion, DatagramsForOtherEndpointsCauseNoCnp) {
  DatagramPeer peer;
  Hand marked(kMarked);
  wire::Packet packet;
  packet.opcode = wire::opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
  packet.destination = roce::queue_pair_at(peer.address.port());
  packet.queue_key = roce::kDatagramQueueKey + 1;
  packet.source = 7;
  marked.send(peer, packet, 8);
  peer.heard(1);
  EXPECT_EQ(peer.port->stats().of(Stat::kQkeyViolations), 1u);
  EXPECT_TRUE(marked.take().empty());
}

TEST(DatagramCongestion, ASenderSlowsDownTowardsThePeerThatSaysSo) {
  DatagramPeer a(socket_of(kMarked));
  DatagramPeer b;
  DatagramPeer c;
  const auto to_b = a.to(b.address);
  const auto to_c = a.to(c.address);
  const auto poll = [&] {
    b.endpoint->poll(b.log);
    a.endpoint->poll(a.log);
  };
  ASSERT_TRUE(send_until(*to_b, poll, is_too_soon));
  EXPECT_TRUE(is_done(send(*to_c, Bytes(kFull)))) << "that way is free";
  EXPECT_EQ(c.heard(1), 1u);
  EXPECT_TRUE(send_until(*to_b, poll, is_done)) << "it is a matter of less than a millisecond";
}

// A program that only sends never polls.
TEST(DatagramCongestion, ASenderThatNeverPollsSlowsDownToo) {
  DatagramPeer a(socket_of(kMarked));
  DatagramPeer b;
  const auto flow = a.to(b.address);
  EXPECT_TRUE(send_until(
      *flow, [&] { b.endpoint->poll(b.log); }, is_too_soon));
}

// A sender cannot slow down for one member of a group.
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

// One thread of it sends, another one sleeps.
TEST(DatagramCongestion, PacketsReadByASenderAreNotLostAndWakeASleeper) {
  for (const std::size_t many : {1, 3}) {
    DatagramPeer a;
    DatagramPeer b;
    DatagramPeer c;
    const auto flow = a.to(b.address);
    ASSERT_TRUE(a.endpoint->fall_asleep());
    for (std::size_t i = 0; i < many; ++i) send(*c.to(a.address), pattern(10, i));
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(is_done(send(*flow, Bytes(kFull))));
    EXPECT_TRUE(os::wait_readable(a.wake.fd(), milliseconds(2'000))) << many;
    a.endpoint->wake_up();
    ASSERT_EQ(a.heard(many), many);
    for (std::size_t i = 0; i < many; ++i) {
      EXPECT_TRUE(a.log.messages[i].bytes == pattern(10, i)) << i;
    }
  }
}

TEST(DatagramCongestion, ACnpOfAHostThatWasSentNothingSlowsNoSender) {
  DatagramPeer a;
  DatagramPeer b;
  Hand stranger(0);
  const auto flow = a.to(b.address);
  const std::uint32_t own = roce::queue_pair_at(a.address.port());
  ASSERT_TRUE(is_done(send(*flow, Bytes(kFull))));
  for (int i = 0; i < 100; ++i) stranger.send_notice(a, own);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (a.port->stats().of(Stat::kUnknownFlow) < 100 && std::chrono::steady_clock::now() < end) {
    a.endpoint->poll(a.log);
  }
  EXPECT_EQ(a.port->stats().of(Stat::kUnknownFlow), 100u);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(is_done(send(*flow, Bytes(kFull))));
}

TEST(DatagramCongestion, ACnpForAnotherQueuePairSlowsNoSender) {
  DatagramPeer a;
  Hand peer(0);
  const auto flow = a.to(peer.socket.address());
  const std::uint32_t own = roce::queue_pair_at(a.address.port());
  ASSERT_TRUE(is_done(send(*flow, Bytes(kFull))));
  peer.send_notice(a, own + 1);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (a.port->stats().of(Stat::kUnknownFlow) == 0 && std::chrono::steady_clock::now() < end) {
    a.endpoint->poll(a.log);
  }
  EXPECT_EQ(a.port->stats().of(Stat::kUnknownFlow), 1u);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(is_done(send(*flow, Bytes(kFull))));
}

}  // namespace
}  // namespace weft::udp
