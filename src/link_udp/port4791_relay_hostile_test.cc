// SPDX-License-Identifier: BSD-2-Clause
// Does nothing but a foreign peer's packets get in through port 4791, whatever strangers send?
#include <gtest/gtest.h>

#include "datagram_test_support.h"
#include "foreign_test_support.h"
#include "os/event.h"
#include "own_network.h"
#include "roce/port4791_relay.h"
#include "wire/cm_message.h"

namespace weft::udp {
namespace {

using namespace testing;
using namespace roce::testing;

// An endpoint without a relay, and a forger that plays the owner of port 4791.
struct Scene {
  explicit Scene(const OwnHost& host)
      : impostor(ForeignHand::at_relay(host.address)),
        here({}, host.address,
             {.relay = std::make_shared<roce::Port4791Relay>(host.address, nullptr,
                                                             Stats::discarded())}),
        foreign{host.another} {
    foreign.from.set_port(50'000);
  }
  // What one of them makes of a packet in a relay header that comes from the right place.
  void hand_on(const Bytes& packet) {
    impostor.send(here.address, foreign.relay_header(here.address, here.address.port(), packet));
    ++sent;
    here.heard(sent);
  }
  Bytes packet(const Change& change = {}) {
    return foreign.packet(here.address, here.address.port(), pattern(60, 1), change);
  }

  ForeignPeer impostor;
  DatagramPeer here;
  ForeignHand foreign;
  std::size_t sent = 0;
};

TEST(HostileRelay, TheHolderOfThePortMayHandOnPacketsOfForeignPeersOnly) {
  on_own_host([](const OwnHost& host) {
    Scene scene(host);
    const Stats& stats = scene.here.port->stats();
    scene.hand_on(scene.packet());
    EXPECT_EQ(scene.here.log.messages.size(), 1U);
    scene.hand_on(scene.packet([](wire::Packet& packet) { packet.source = 0x80'0000; }));
    EXPECT_EQ(stats.of(Stat::kRelayedFromWeft), 1U);
    scene.hand_on(scene.packet([](wire::Packet& packet) { packet.destination += 0x100; }));
    EXPECT_EQ(stats.of(Stat::kUnknownQp), 1U);
    scene.hand_on(scene.packet([](wire::Packet& packet) {
      packet.opcode = opcode_of(wire::Transport::kReliableDatagram, wire::Operation::kSendOnly);
    }));
    EXPECT_EQ(stats.of(Stat::kUnknownQp), 2U);
    scene.hand_on(scene.packet([](wire::Packet& packet) { packet.queue_key ^= 1; }));
    EXPECT_EQ(stats.of(Stat::kQkeyViolations), 1U);
    scene.hand_on(scene.packet([](wire::Packet& packet) { packet.pkey = 1; }));
    EXPECT_EQ(stats.of(Stat::kPkeyViolations), 1U);
    Bytes changed = scene.packet();
    changed.back() ^= std::byte{1};
    scene.hand_on(changed);
    EXPECT_EQ(stats.of(Stat::kIcrcErrors), 1U);
    EXPECT_EQ(scene.here.log.messages.size(), 1U);
    EXPECT_EQ(scene.here.lost(), 6U);
    EXPECT_EQ(scene.here.log.opened.size(), 1U);
  });
}

TEST(HostileRelay, AForeignPeerIsNeverTakenForAnEndpointOfWeft) {
  on_own_host([](const OwnHost& host) {
    Scene scene(host);
    DatagramPeer friendly({}, host.address);
    const auto flow = friendly.to(scene.here.address);
    send(*flow, pattern(10, 2));
    ++scene.sent;
    scene.foreign.from = friendly.address;
    scene.hand_on(scene.packet());
    ASSERT_EQ(scene.here.heard(2), 2U);
    const auto& messages = scene.here.log.messages;
    EXPECT_NE(messages[0].arrival.source, messages[1].arrival.source);
  });
}

TEST(HostileRelay, ARelayHeaderFromAnotherPortOrAddressIsRefused) {
  on_own_host([](const OwnHost& host) {
    Scene scene(host);
    ForeignPeer another_port(host.address);
    ForeignPeer another_address(ForeignHand::at_relay(host.another));
    for (ForeignPeer* each : {&another_port, &another_address}) {
      each->send(scene.here.address,
                 scene.foreign.relay_header(scene.here.address, scene.here.address.port(),
                                            scene.packet()));
    }
    EXPECT_EQ(scene.here.heard(2), 0U);
    EXPECT_EQ(scene.here.port->stats().of(Stat::kForgedRelayHeaders), 2U);
    EXPECT_EQ(text_of(scene.here.stats), "forged_relay_headers 2");
  });
}

TEST(HostileRelay, WithoutADoorNothingIsHandedOnToAnEndpoint) {
  on_own_host([](const OwnHost& host) {
    Scene scene(host);
    DatagramPeer closed({}, host.address);
    scene.impostor.send(closed.address, scene.foreign.relay_header(
                                            closed.address, closed.address.port(), scene.packet()));
    EXPECT_EQ(closed.heard(1), 0U);
    EXPECT_EQ(closed.port->stats().dropped(), 1U);
  });
}

TEST(HostileRelay, FlowsTakeNoRelayHeader) {
  on_own_host([](const OwnHost& host) {
    Regions regions;
    RdmOptions options;
    options.regions = regions.open();
    Peer reliable(options, host.address);
    ForeignPeer impostor(ForeignHand::at_relay(host.address));
    const ForeignHand foreign{host.another};
    const std::uint16_t port = reliable.address.port();
    // A message, and a datagram of reliable datagrams.
    const Bytes packets[] = {
        foreign.packet(host.address, port, pattern(256, 1),
                       [](wire::Packet& packet) {
                         packet.destination = wire::kCmQpn;
                         packet.queue_key = wire::kCmQueueKey;
                       }),
        foreign.packet(host.address, port, pattern(60, 1), [](wire::Packet& packet) {
          packet.opcode = opcode_of(wire::Transport::kReliableDatagram, wire::Operation::kSendOnly);
        })};
    for (const Bytes& packet : packets) {
      impostor.send(reliable.address, foreign.relay_header(host.address, port, packet));
    }
    const Stats& stats = reliable.port->stats();
    EXPECT_TRUE(until({&reliable}, [&] { return stats.dropped() == 2; }));
    EXPECT_TRUE(reliable.log.opened.empty());
    EXPECT_EQ(reliable.port->stats().of(Stat::kConnectionMessages), 0U);
  });
}

// Sends to a relay, polls the endpoint that has it, and gives the relay's counts.
struct AtRelay {
  explicit AtRelay(const OwnHost& host)
      : relay(std::make_shared<roce::Port4791Relay>(host.address, nullptr, relay_stats)),
        holder({}, host.address, {.relay = relay}),
        foreign(host.another) {}
  // Packets that were delivered, forwarded or dropped.
  static std::uint64_t all(const Stats& stats) {
    return stats.sum(Stat::kRelayDelivered, Stat::kRelaySendErrors);
  }
  const Stats& send(const Bytes& bytes) {
    foreign.send(ForeignHand::at_relay(holder.address), bytes);
    ++sent;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (all(relay_stats) < sent && std::chrono::steady_clock::now() < end) {
      holder.endpoint->poll(holder.log);
    }
    return relay_stats;
  }
  const Stats& send_to(std::uint32_t queue_pair) {
    return send(foreign.packet(holder.address, 0, pattern(8, 1),
                               [&](wire::Packet& packet) { packet.destination = queue_pair; }));
  }

  Stats relay_stats;
  std::shared_ptr<roce::Port4791Relay> relay;
  DatagramPeer holder;
  ForeignPeer foreign;
  std::uint64_t sent = 0;
};

TEST(HostileRelay, NothingIsHandedOnToWhatIsNoEndpoint) {
  on_own_host([](const OwnHost& host) {
    AtRelay at(host);
    std::uint64_t count = 0;
    for (const std::uint32_t queue_pair :
         {std::uint32_t{0}, ForeignHand::kQueuePair, roce::queue_pair_at(53),
          roce::queue_pair_at(wire::kUdpPort), roce::queue_pair_at(32'767), wire::kMulticastQpn}) {
      EXPECT_EQ(at.send_to(queue_pair).of(Stat::kRelayUnknownQp), ++count) << queue_pair;
    }
    EXPECT_EQ(at.send_to(wire::kCmQpn).of(Stat::kRelayMalformed), 1U) << "no message of a manager";
    EXPECT_EQ(at.relay_stats.of(Stat::kRelayForwarded), 0U);
    EXPECT_EQ(at.holder.heard(), 0U);
  });
}

TEST(HostileRelay, InvalidAndRelayedPacketsAreNotHandedOn) {
  on_own_host([](const OwnHost& host) {
    AtRelay at(host);
    DatagramPeer other({}, host.address);
    const Bytes packet = at.foreign.packet(host.address, other.address.port(), pattern(20, 1));
    std::uint64_t count = 0;
    EXPECT_EQ(at.send(at.foreign.relay_header(host.address, other.address.port(), packet))
                  .of(Stat::kRelayMalformed),
              ++count);
    for (const std::size_t length : {0, 1, 11, 15, 27}) {
      Bytes cut(packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(length));
      EXPECT_EQ(at.send(cut).of(Stat::kRelayMalformed), ++count) << length;
    }
    Bytes long_one = at.foreign.packet(host.address, other.address.port(), pattern(4100, 1));
    EXPECT_EQ(at.send(long_one).of(Stat::kRelayMalformed), ++count);
    EXPECT_EQ(at.relay_stats.of(Stat::kRelayForwarded), 0U);
  });
}

// The longest that parse() takes: a reliable datagram, which is longer than a foreign peer's.
TEST(HostileRelay, TheLongestPacketsAreRelayedWithoutHarm) {
  on_own_host([](const OwnHost& host) {
    AtRelay at(host);
    DatagramPeer other({}, host.address, {.relay = at.relay});
    std::uint64_t count = 0;
    for (const std::size_t length : {wire::kMaxPathMtu + 4, wire::kMaxReliableDatagramMtu}) {
      at.send(at.foreign.packet(
          host.address, other.address.port(), pattern(length, 1), [](wire::Packet& packet) {
            packet.opcode = wire::opcode_of(wire::Transport::kReliableDatagram,
                                            wire::Operation::kWriteOnlyImmediate);
          }));
      EXPECT_EQ(at.relay_stats.of(Stat::kRelayForwarded), ++count);
    }
    EXPECT_EQ(other.heard(2), 0U);
    EXPECT_EQ(other.port->stats().of(Stat::kUnknownQp), 2U);
  });
}

// Sockets of other programs, which may trust what comes from this host, and endpoints of Weft that
// hear no foreign peers.
TEST(HostileRelay, OnlyDatagramEndpointsAreRelayedTo) {
  on_own_host([](const OwnHost& host) {
    AtRelay at(host);
    DatagramPeer closed({}, host.address);
    std::uint64_t count = 0;
    for (const os::SocketAddress& each : {host.address, host.wildcard}) {
      const auto other = std::move(os::UdpSocket::bind(each, {})).value();
      at.send(at.foreign.packet(host.address, other.address().port(), pattern(20, 1)));
      EXPECT_EQ(at.relay_stats.of(Stat::kRelayUnreachable), ++count);
      EXPECT_FALSE(os::wait_readable(other.fd(), std::chrono::milliseconds(0)));
    }
    at.send(at.foreign.packet(host.address, closed.address.port(), pattern(20, 1)));
    EXPECT_EQ(at.relay_stats.of(Stat::kRelayUnreachable), ++count);
    EXPECT_EQ(closed.heard(), 0U);
    EXPECT_EQ(closed.lost(), 0U) << "nothing came there";
    EXPECT_EQ(at.relay_stats.of(Stat::kRelayForwarded), 0U);
    DatagramPeer open({}, host.wildcard, {.relay = at.relay});
    at.send(at.foreign.packet(host.address, open.address.port(), pattern(20, 1)));
    EXPECT_EQ(at.relay_stats.of(Stat::kRelayForwarded), 1U);
    EXPECT_EQ(open.heard(1), 1U);
  });
}

TEST(HostileRelay, APacketWithAWrongIcrcIsNotRelayed) {
  on_own_host([](const OwnHost& host) {
    AtRelay at(host);
    DatagramPeer other({}, host.address, {.relay = at.relay});
    Bytes bytes = at.foreign.packet(host.address, other.address.port(), pattern(20, 1));
    bytes.back() ^= std::byte{1};
    EXPECT_EQ(at.send(bytes).of(Stat::kRelayIcrcErrors), 1U);
    EXPECT_EQ(at.relay_stats.of(Stat::kRelayForwarded), 0U);
    EXPECT_EQ(text_of(at.relay_stats), "relay_icrc_errors 1");
  });
}

TEST(HostileRelay, RandomPacketsDisturbNoEndpoint) {
  on_own_host([](const OwnHost& host) {
    AtRelay at(host);
    DatagramPeer other({}, host.address, {.relay = at.relay});
    std::mt19937_64 random(7);
    for (int i = 0; i < 2'000; ++i) {
      Bytes bytes = at.foreign.packet(host.address, other.address.port(), pattern(20, 1));
      for (auto changes = 1 + random() % 3; changes > 0; --changes) {
        bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 + random() % 255);
      }
      at.send(bytes);
    }
    const Stats& counts = at.relay_stats;
    EXPECT_EQ(AtRelay::all(counts), 2'000U);
    EXPECT_GT(counts.of(Stat::kRelayIcrcErrors), 500U);
    other.heard();
    // A change of the bits that routers may change is none.
    EXPECT_LE(counts.of(Stat::kRelayForwarded), 40U);
    EXPECT_LE(other.log.messages.size(), 40U);
    for (const auto& message : other.log.messages) EXPECT_TRUE(message.bytes == pattern(20, 1));
  });
}

}  // namespace
}  // namespace weft::udp
