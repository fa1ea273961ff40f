// SPDX-License-Identifier: BSD-2-Clause
// Do messages of foreign connection managers reach those of this host through port 4791, and are
// requests refused that have none?
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <random>

#include "foreign_test_support.h"
#include "os/event.h"
#include "own_network.h"
#include "roce/packet_port.h"
#include "roce/port4791_relay.h"

namespace weft::roce {
namespace {

using namespace testing;
using std::chrono::milliseconds;

bool until(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

// A port with a connection manager that writes down what it hears.
struct Manager final : PacketHandler {
  Manager(const os::SocketAddress& at, std::shared_ptr<Port4791Relay> relay) {
    auto socket = std::move(os::UdpSocket::bind(at, {})).value();
    port = std::move(PacketPort::open(std::move(socket), wake, {.relay = relay, .stats = &stats}))
               .value();
    number = port->attach(*this, QpnUse::kManager, os::coarse_now()).value();
  }
  ~Manager() { port->detach(number, os::coarse_now()); }

  void take(const PacketArrival& arrival) override {
    mads.push_back(wire::parse_cm(arrival.packet.payload).value());
    from.push_back(arrival.from);
  }
  void take_cnp(const PacketArrival&) override {}
  void unreachable(const os::UdpError&) override {}

  bool hears(std::size_t count) {
    return until([&] {
      port->poll(64, 4);
      return mads.size() >= count;
    });
  }

  os::WakeSet wake = std::move(os::WakeSet::create()).value();
  Stats stats;
  std::unique_ptr<PacketPort> port;
  std::uint32_t number = 0;
  std::vector<wire::CmMad> mads;
  std::vector<os::SocketAddress> from;
};

// A relay, a manager of the process that has it, and a foreign one, which has port 4791 of another
// address.
struct Scene {
  explicit Scene(const OwnHost& host)
      : Scene(host.address, host.address, ForeignHand::at_relay(host.another)) {}
  Scene(const os::SocketAddress& host, const os::SocketAddress& own,
        const os::SocketAddress& theirs)
      : address(host),
        relay(std::make_shared<Port4791Relay>(own, nullptr, stats)),
        manager(own, relay),
        foreign(theirs) {}

  std::uint16_t port() const { return manager.port->address().port(); }
  static wire::CmMad req(std::uint16_t port, std::uint32_t local_id = 0x55) {
    wire::CmReq req;
    req.local_id = local_id;
    req.service = wire::service_of(wire::kPortSpaceTcp, port);
    return {.transaction = 0xABCD'0000'0000'0001, .message = req};
  }
  void send(const Bytes& bytes) { foreign.send(ForeignHand::at_relay(address), bytes); }
  void send(const wire::CmMad& mad, const Change& change = {}) {
    send(foreign.mad(address, mad, change));
  }
  // Polls until the relay has counted that; then it is exactly so.
  bool counts(Stat stat, std::uint64_t count) {
    until([&] {
      manager.port->poll(64, 4);
      return stats.of(stat) >= count;
    });
    return stats.of(stat) == count;
  }
  // What has come back to the foreign manager; nothing when nothing comes.
  std::optional<wire::CmMad> answer(milliseconds patience = milliseconds(20'000)) {
    os::UdpBatch batch(1);
    std::optional<wire::CmMad> mad;
    if (!os::wait_readable(foreign.socket.fd(), patience)) return mad;
    EXPECT_EQ(foreign.socket.receive(batch), 0);
    batch.for_each([&](const os::Datagram& datagram) {
      EXPECT_EQ(datagram.from, ForeignHand::at_relay(address));
      EXPECT_TRUE(wire::check_icrc(route_between(datagram.from, datagram.to), datagram.bytes));
      wire::Packet packet;
      EXPECT_EQ(wire::parse(datagram.bytes, packet), wire::Malformed::kNone);
      mad = read_cm(packet);
    });
    return mad;
  }
  static std::optional<wire::CmMad> read_cm(const wire::Packet& packet) {
    EXPECT_EQ(packet.destination, wire::kCmQpn);
    EXPECT_EQ(packet.queue_key, wire::kCmQueueKey);
    return wire::parse_cm(packet.payload);
  }

  const os::SocketAddress address;
  Stats stats;  // of the relay
  std::shared_ptr<Port4791Relay> relay;
  Manager manager;
  ForeignPeer foreign;
};

TEST(MadRelay, ARequestReachesTheManagerOfThePortInItsService) {
  on_own_host([](const OwnHost& host) {
    Scene scene(host);
    Manager other(host.address, scene.relay);
    scene.send(Scene::req(other.port->address().port(), 0x66));
    EXPECT_TRUE(scene.counts(Stat::kRelayForwarded, 1));
    ASSERT_TRUE(other.hears(1));
    EXPECT_EQ(std::get<wire::CmReq>(other.mads[0].message).local_id, 0x66U);
    EXPECT_EQ(other.from[0], ForeignHand::at_relay(host.another));
    scene.send(Scene::req(scene.port(), 0x77));
    ASSERT_TRUE(scene.manager.hears(1));
    EXPECT_EQ(std::get<wire::CmReq>(scene.manager.mads[0].message).local_id, 0x77U);
    EXPECT_EQ(other.mads.size(), 1U);
    EXPECT_EQ(text_of(scene.stats), "relay_forwarded 2");
  });
}

TEST(MadRelay, OtherMessagesReachTheManagerThatAssignedTheirId) {
  on_own_host([](const OwnHost& host) {
    Scene scene(host);
    const std::uint32_t id = std::uint32_t{scene.port()} << 16 | 5;
    wire::CmRep rep;
    rep.remote_id = id;
    wire::CmRej rej;
    rej.remote_id = id;
    wire::CmDreq dreq;
    dreq.remote_id = id;
    wire::CmSidrRep resolved;
    resolved.request = id;
    const std::vector<wire::CmMessage> messages{rep, rej, dreq, resolved};
    for (const wire::CmMessage& each : messages) scene.send({.message = each});
    ASSERT_TRUE(scene.manager.hears(messages.size()));
    for (std::size_t i = 0; i < messages.size(); ++i) {
      EXPECT_EQ(scene.manager.mads[i].message.index(), messages[i].index());
    }
    EXPECT_EQ(scene.stats.of(Stat::kRelayRefusals), 0U);
  });
}

TEST(MadRelay, AManagerAtAWildcardAddressIsReachedAtEachAddress) {
  on_own_host([](const OwnHost& host) {
    // The relay has port 4791 of both addresses.
    Scene scene(host.address, host.wildcard, host.another);
    scene.send(Scene::req(scene.port()));
    EXPECT_TRUE(scene.manager.hears(1));
    scene.foreign.send(ForeignHand::at_relay(host.another),
                       scene.foreign.mad(host.another, Scene::req(scene.port())));
    EXPECT_TRUE(scene.manager.hears(2));
  });
}

TEST(MadRelay, AManagerOfAnotherProcessIsReached) {
  on_own_host([](const OwnHost& host) {
    Scene scene(host);
    os::SocketAddress theirs = host.address;
    theirs.set_port(50'123);
    const OtherProcess other([&](const std::function<void()>& ready) {
      Stats stats;
      Manager manager(theirs, std::make_shared<Port4791Relay>(host.address, nullptr, stats));
      ready();
      EXPECT_TRUE(manager.hears(1));
      // It tells by an answer that it has heard.
      wire::CmMra mra;
      mra.remote_id = std::get<wire::CmReq>(manager.mads.at(0).message).local_id;
      ForeignPeer teller(host.address);
      teller.send(ForeignHand::at_relay(host.another), teller.mad(host.another, {.message = mra}));
      for (;;) os::wait_readable(teller.socket.fd(), milliseconds(1000));
    });
    scene.send(Scene::req(theirs.port(), 0x88));
    EXPECT_TRUE(scene.counts(Stat::kRelayForwarded, 1));
    EXPECT_TRUE(os::wait_readable(scene.foreign.socket.fd(), milliseconds(20'000)));
  });
}

TEST(MadRelay, ARequestWithoutAListenerIsRejectedAtOnce) {
  on_own_host([](const OwnHost& host) {
    Scene scene(host);
    scene.send(Scene::req(7174, 0x99));
    EXPECT_TRUE(scene.counts(Stat::kRelayUnreachable, 1));
    const auto answer = scene.answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->transaction, 0xABCD'0000'0000'0001U);
    const auto& rej = std::get<wire::CmRej>(answer->message);
    EXPECT_EQ(rej.reason, wire::CmReason::kInvalidService);
    EXPECT_EQ(rej.remote_id, 0x99U);
    EXPECT_EQ(rej.local_id, 0U);
    EXPECT_EQ(text_of(scene.stats), "relay_unreachable 1, relay_refusals 1");
  });
}

// A requester of Weft listens at the port that it sends from, and not at port 4791.
TEST(MadRelay, AnswersToARequestOfWeftGoToThePortItCameFrom) {
  on_own_host([](const OwnHost& host) {
    Scene scene(host.address, host.address, host.another);
    wire::CmReq req;
    req.local_id = 0x55;
    req.service = 0x5765'6674'0003'0000 | scene.port();
    scene.send({.message = req});
    EXPECT_TRUE(scene.counts(Stat::kRelayForwarded, 1));
    ASSERT_TRUE(scene.manager.hears(1));
    EXPECT_EQ(scene.manager.from[0], scene.foreign.socket.address());
    req.service ^= 1;
    scene.send({.message = req});
    EXPECT_TRUE(scene.counts(Stat::kRelayUnreachable, 1));
    const auto answer = scene.answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(std::get<wire::CmRej>(answer->message).remote_id, 0x55U);
  });
}

// That listener is not reached through port 4791 (FI_WEFT_FOREIGN_PEERS=no), but by the requester.
TEST(MadRelay, ARequestOfWeftForAPortThatHasASocketIsNotRejected) {
  on_own_host([](const OwnHost& host) {
    Scene scene(host.address, host.address, host.another);
    auto listener =
        std::make_unique<os::UdpSocket>(std::move(os::UdpSocket::bind(host.address, {})).value());
    wire::CmReq req;
    req.local_id = 0x55;
    req.service = 0x5765'6674'0003'0000 | listener->address().port();
    scene.send({.message = req});
    EXPECT_TRUE(scene.counts(Stat::kRelayUnreachable, 1));
    EXPECT_EQ(scene.stats.of(Stat::kRelayRefusals), 0U);
    listener.reset();
    scene.send({.message = req});
    EXPECT_TRUE(scene.counts(Stat::kRelayRefusals, 1));
  });
}

TEST(MadRelay, AServiceThatNamesNoPortIsRejectedToo) {
  on_own_host([](const OwnHost& host) {
    Scene scene(host);
    wire::CmSidrReq resolve;
    resolve.request = 0x44;
    resolve.service = 0x1000'0000'0000'0001;
    scene.send({.message = resolve});
    EXPECT_TRUE(scene.counts(Stat::kRelayUnreachable, 1));
    const auto answer = scene.answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(std::get<wire::CmSidrRep>(answer->message).request, 0x44U);
    EXPECT_EQ(std::get<wire::CmSidrRep>(answer->message).status, 1);
  });
}

TEST(MadRelay, AProcessThatHasClosedItsManagerIsAbsent) {
  on_own_host([](const OwnHost& host) {
    Scene scene(host);
    const std::uint16_t port = [&] {
      const Manager gone(host.address, scene.relay);
      return gone.port->address().port();
    }();
    wire::CmDreq dreq;
    dreq.local_id = 0x33;
    dreq.remote_id = std::uint32_t{port} << 16 | 9;
    scene.send({.message = dreq});
    EXPECT_TRUE(scene.counts(Stat::kRelayUnreachable, 1));
    const auto answer = scene.answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(std::get<wire::CmDrep>(answer->message).remote_id, 0x33U);
    // Answers to what was never asked are answered by nothing.
    wire::CmRep rep;
    rep.remote_id = dreq.remote_id;
    scene.send({.message = rep});
    EXPECT_TRUE(scene.counts(Stat::kRelayUnreachable, 2));
    EXPECT_FALSE(scene.answer(milliseconds(20)));
  });
}

// A socket of another program, and a port of Weft without a manager.
TEST(MadRelay, NothingGoesToAPortWithoutAManager) {
  on_own_host([](const OwnHost& host) {
    Scene scene(host);
    const auto other = std::move(os::UdpSocket::bind(host.address, {})).value();
    os::WakeSet wake = std::move(os::WakeSet::create()).value();
    const auto without =
        std::move(PacketPort::open(std::move(os::UdpSocket::bind(host.address, {})).value(), wake,
                                   {.relay = scene.relay}))
            .value();
    std::uint64_t count = 0;
    for (const std::uint16_t port :
         {other.address().port(), without->address().port(), wire::kUdpPort, std::uint16_t{0}}) {
      scene.send(Scene::req(port));
      EXPECT_TRUE(scene.counts(Stat::kRelayUnreachable, ++count)) << port;
    }
    EXPECT_FALSE(os::wait_readable(other.fd(), milliseconds(0)));
    EXPECT_EQ(scene.stats.of(Stat::kRelayForwarded), 0U);
    EXPECT_EQ(scene.stats.of(Stat::kRelayRefusals), count);
  });
}

TEST(HostileMadRelay, MalformedMessagesAreDroppedAndCounted) {
  on_own_host([](const OwnHost& host) {
    Scene scene(host);
    const wire::CmMad right = Scene::req(scene.port());
    std::uint64_t count = 0;
    const auto is_dropped = [&](const Bytes& bytes) {
      scene.send(bytes);
      return scene.counts(Stat::kRelayMalformed, ++count);
    };
    const std::vector<Change> changes{
        [](wire::Packet& packet) { packet.queue_key = ForeignHand::kQueueKey; },
        [](wire::Packet& packet) { packet.pkey = 0x8001; },
        [](wire::Packet& packet) {
          packet.opcode = wire::opcode_of(wire::Transport::kUnreliableDatagram,
                                          wire::Operation::kSendOnlyImmediate);
        },
        [](wire::Packet& packet) {
          packet.opcode =
              wire::opcode_of(wire::Transport::kReliableConnection, wire::Operation::kSendOnly);
        }};
    for (const Change& change : changes) {
      EXPECT_TRUE(is_dropped(scene.foreign.mad(host.address, right, change)));
    }
    const auto mad = wire::write_cm(right);
    const auto with_payload = [&](const Bytes& payload) {
      return scene.foreign.packet(host.address, 0, payload, [](wire::Packet& packet) {
        packet.opcode =
            wire::opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
        packet.destination = packet.source = wire::kCmQpn;
        packet.queue_key = wire::kCmQueueKey;
      });
    };
    for (const std::size_t length : {0U, 24U, 252U, 255U, 516U}) {
      Bytes payload(length);
      std::copy_n(mad.begin(), std::min(length, mad.size()), payload.begin());
      EXPECT_TRUE(is_dropped(with_payload(payload))) << length;
    }
    // Base version, class, class version, method, attribute.
    for (const std::size_t at : {0U, 1U, 2U, 3U, 17U}) {
      Bytes payload(mad.begin(), mad.end());
      payload[at] ^= std::byte{0x40};
      EXPECT_TRUE(is_dropped(with_payload(payload))) << at;
    }
    EXPECT_FALSE(scene.answer(milliseconds(20)));
    EXPECT_TRUE(scene.manager.mads.empty());
    EXPECT_EQ(scene.stats.of(Stat::kRelayForwarded) + scene.stats.of(Stat::kRelayRefusals), 0U);
  });
}

TEST(HostileMadRelay, AWrongIcrcDrawsNoAnswer) {
  on_own_host([](const OwnHost& host) {
    Scene scene(host);
    Bytes bytes = scene.foreign.mad(host.address, Scene::req(7174));
    bytes.back() ^= std::byte{1};
    scene.send(bytes);
    EXPECT_TRUE(scene.counts(Stat::kRelayIcrcErrors, 1));
    EXPECT_FALSE(scene.answer(milliseconds(20)));
    EXPECT_EQ(text_of(scene.stats), "relay_icrc_errors 1");
  });
}

TEST(HostileMadRelay, AFloodOfRequestsDrawsFewAnswersAndDoesNotKeepOthersOut) {
  on_own_host([](const OwnHost& host) {
    Scene scene(host);
    constexpr unsigned kMany = 2'000;
    const auto start = std::chrono::steady_clock::now();
    for (unsigned i = 1; i <= kMany; ++i) {
      scene.send(Scene::req(7174, i));
      if (i % 32 == 0) {
        EXPECT_TRUE(scene.counts(Stat::kRelayUnreachable, i));
      }
    }
    EXPECT_TRUE(scene.counts(Stat::kRelayUnreachable, kMany));
    const auto seconds = std::chrono::steady_clock::now() - start;
    const auto windows = static_cast<unsigned>(seconds / std::chrono::seconds(1)) + 2;
    EXPECT_LE(scene.stats.of(Stat::kRelayRefusals), windows * AnswerRates().per_source_and_second);
    scene.send(Scene::req(scene.port()));
    EXPECT_TRUE(scene.manager.hears(1));
  });
}

// An answer to the relay's own address must not go round for ever.
TEST(HostileMadRelay, ARequestThatSeemsToComeFromTheRelayItselfEndsThere) {
  on_own_host([](const OwnHost& host) {
    Scene scene(host);
    ForeignPeer here(host.address);
    wire::CmDreq dreq;
    dreq.remote_id = 7174U << 16;
    const std::vector<wire::CmMad> asked{Scene::req(7174), {.message = dreq}};
    for (const wire::CmMad& each : asked) {
      here.send(ForeignHand::at_relay(host.address), here.mad(host.address, each));
    }
    EXPECT_TRUE(scene.counts(Stat::kRelayUnreachable, 4)) << "two requests, two answers";
    for (int i = 0; i < 100; ++i) scene.manager.port->poll(64, 4);
    EXPECT_EQ(text_of(scene.stats), "relay_unreachable 4, relay_refusals 2");
  });
}

TEST(HostileMadRelay, RandomMessagesDisturbNoManager) {
  on_own_host([](const OwnHost& host) {
    Scene scene(host);
    std::mt19937_64 random(11);
    const wire::CmMad right = Scene::req(scene.port());
    for (int i = 1; i <= 2'000; ++i) {
      auto mad = wire::write_cm(right);
      for (auto changes = random() % 4; changes > 0; --changes) {
        mad[random() % 40] ^= static_cast<std::byte>(1 + random() % 255);
      }
      scene.send(scene.foreign.packet(
          host.address, 0, Bytes(mad.begin(), mad.end()), [](wire::Packet& packet) {
            packet.opcode =
                wire::opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
            packet.destination = packet.source = wire::kCmQpn;
            packet.queue_key = wire::kCmQueueKey;
          }));
      EXPECT_TRUE(until([&] {
        scene.manager.port->poll(64, 4);
        return scene.stats.sum(Stat::kRelayDelivered, Stat::kRelaySendErrors) ==
               static_cast<std::uint64_t>(i);
      }));
    }
    EXPECT_GT(scene.stats.of(Stat::kRelayForwarded), 300U);
    EXPECT_GT(scene.stats.of(Stat::kRelayMalformed), 300U);
    EXPECT_TRUE(scene.manager.hears(scene.stats.of(Stat::kRelayForwarded)));
  });
}

}  // namespace
}  // namespace weft::roce
