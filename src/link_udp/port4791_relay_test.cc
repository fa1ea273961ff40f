// SPDX-License-Identifier: BSD-2-Clause
// Do packets of foreign peers reach their endpoints, whichever process has port 4791?
#include "roce/port4791_relay.h"

#include <gtest/gtest.h>

#include <optional>

#include "datagram_test_support.h"
#include "foreign_test_support.h"
#include "os/event.h"
#include "os/interfaces.h"
#include "own_network.h"
#include "roce/relay_set.h"
#include "wire/tap.h"

namespace weft::udp {
namespace {

using namespace testing;
using namespace roce::testing;
using std::chrono::milliseconds;

// An endpoint whose relay is its own, as if it were the only one of its process.
struct Guarded {
  explicit Guarded(const os::SocketAddress& at,
                   const std::shared_ptr<roce::Port4791Relay>& shared = nullptr,
                   wire::Tap* capture = nullptr)
      : relay(shared != nullptr ? shared
                                : std::make_shared<roce::Port4791Relay>(at, nullptr, relay_stats)),
        peer({}, at, {.capture = capture, .relay = relay}) {}
  Stats relay_stats;  // of its own relay
  std::shared_ptr<roce::Port4791Relay> relay;
  DatagramPeer peer;

  os::SocketAddress at(const os::SocketAddress& host) const {
    os::SocketAddress name = host;
    name.set_port(peer.address.port());
    return name;
  }
};

// Polls all of them until that holds; false when it does not within 20 seconds.
bool until(std::initializer_list<Guarded*> polled, const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    for (Guarded* each : polled) each->peer.endpoint->poll(each->peer.log);
  }
  return true;
}

// Whether that endpoint hears exactly one more datagram, with those bytes, while these are polled.
bool hears(Guarded& guarded, std::initializer_list<Guarded*> polled, const Bytes& payload) {
  auto& messages = guarded.peer.log.messages;
  const std::size_t before = messages.size();
  return until(polled, [&] { return messages.size() > before; }) && messages.size() == before + 1 &&
         messages.back().bytes == payload;
}

// Writes down where packets came from and went to, and what is said of them.
struct Record final : wire::Tap {
  struct Entry {
    wire::CaptureDirection direction;
    wire::Route route;
    Bytes bytes;
    std::string remark;
  };
  std::vector<Entry> entries;
  bool takes() const override { return true; }
  void packet(wire::CaptureDirection direction, const wire::Route& route, wire::Ipv4Words,
              std::span<const std::byte> bytes, std::string_view remark) override {
    entries.push_back({direction, route, {bytes.begin(), bytes.end()}, std::string(remark)});
  }
};

// A socket at port 4791 which is not Weft's.
os::UdpSocket squatter(const os::SocketAddress& host) {
  return std::move(os::UdpSocket::bind(ForeignHand::at_relay(host), {})).value();
}

TEST(Port4791Relay, AForeignPeersDatagramArrives) {
  on_own_host([](const OwnHost& host) {
    Guarded here(host.address);
    ForeignPeer foreign(host.another);
    foreign.send_cm(here.peer.address, pattern(1000, 1));
    EXPECT_TRUE(hears(here, {&here}, pattern(1000, 1)));
    const link::Arrival& arrival = here.peer.log.messages.at(0).arrival;
    EXPECT_EQ(arrival.operation, link::MessageOperation::kDatagram);
    EXPECT_TRUE(arrival.has_data);
    EXPECT_EQ(arrival.data, 0xABCD'EF01);
    EXPECT_EQ(here.relay_stats.of(Stat::kRelayDelivered), 1U);
    EXPECT_EQ(here.peer.port->stats().dropped(), 0U);
  });
}

TEST(Port4791Relay, AllOfAForeignHostIsOneSourceAtPort4791) {
  on_own_host([](const OwnHost& host) {
    Guarded here(host.address);
    ForeignPeer one(host.another);
    ForeignPeer two(host.another);
    ForeignPeer third(host.address);
    for (ForeignPeer* each : {&one, &two, &third}) {
      each->send_cm(here.peer.address, pattern(10, 2));
      EXPECT_TRUE(hears(here, {&here}, pattern(10, 2)));
    }
    ASSERT_EQ(here.peer.log.opened.size(), 2U);
    EXPECT_EQ(here.peer.log.opened[0].second, ForeignHand::at_relay(host.another));
    EXPECT_EQ(here.peer.log.opened[1].second, ForeignHand::at_relay(host.address));
  });
}

TEST(Port4791Relay, AForeignPeerIsHeardByTheGroupsOfItsPort) {
  on_own_host([](const OwnHost& host) {
    if (host.address.family() == AF_INET6) return;  // the loopback has no groups then
    Guarded here(host.address);
    DatagramPeer closed({}, host.address);  // to foreign peers
    const auto interfaces = os::usable_interfaces();
    const os::Interface* exit = os::owner_of(interfaces.value(), host.address);
    ASSERT_NE(exit, nullptr);
    const auto group = os::address_of("239.255.7.9", wire::kUdpPort);
    const auto member = here.peer.endpoint->join(group);
    const auto other_member = closed.endpoint->join(group);
    ASSERT_TRUE(member.ok()) << member.error().message;
    ASSERT_TRUE(other_member.ok()) << other_member.error().message;
    ForeignPeer foreign(host.another);
    ASSERT_TRUE(foreign.socket.send_to_group_by(group, exit->index, true).ok());
    const auto send_cm = [&](std::uint32_t source, std::uint32_t destination) {
      foreign.send(group, foreign.packet(group, 0, pattern(100, 1), [&](wire::Packet& packet) {
        packet.source = source;
        packet.destination = destination;
      }));
    };
    send_cm(ForeignHand::kQueuePair, wire::kMulticastQpn);
    EXPECT_TRUE(hears(here, {&here}, pattern(100, 1)));
    EXPECT_EQ(here.peer.log.messages.back().arrival.tag, link::group_number(group));
    EXPECT_EQ(here.peer.log.opened.back().second, ForeignHand::at_relay(host.another));
    send_cm(ForeignHand::kQueuePair, roce::queue_pair_at(here.peer.address.port()));
    send_cm(roce::queue_pair_at(closed.address.port()), wire::kMulticastQpn);
    const Stats& stats = here.peer.port->stats();
    EXPECT_TRUE(until(
        {&here}, [&] { return stats.of(Stat::kIcrcErrors) + stats.of(Stat::kUnknownQp) == 2; }));
    EXPECT_EQ(stats.of(Stat::kIcrcErrors), 1U)
        << "one of Weft's endpoints sends no such identification";
    EXPECT_EQ(here.peer.log.messages.size(), 1U);
    EXPECT_EQ(closed.heard(3), 0U);
  });
}

TEST(Port4791Relay, AnEndpointOfAnotherProcessHearsThroughTheHolder) {
  on_own_host([](const OwnHost& host) {
    Guarded holder(host.address);
    Guarded other(host.address);
    ForeignPeer foreign(host.another);
    for (const std::size_t length : {std::size_t{0}, std::size_t{1}, wire::kMaxPathMtu}) {
      foreign.send_cm(other.peer.address, pattern(length, 3));
      EXPECT_TRUE(hears(other, {&holder, &other}, pattern(length, 3))) << length;
    }
    EXPECT_EQ(other.peer.log.opened.at(0).second, ForeignHand::at_relay(host.another));
    EXPECT_EQ(holder.relay_stats.of(Stat::kRelayForwarded), 3U);
    EXPECT_EQ(other.relay_stats.of(Stat::kRelayDelivered), 0U);
    EXPECT_TRUE(holder.peer.log.messages.empty());
    foreign.send_cm(holder.peer.address, pattern(5, 4));
    EXPECT_TRUE(hears(holder, {&holder, &other}, pattern(5, 4)));
  });
}

TEST(Port4791Relay, EndpointsOfOneProcessHearWhicheverOfThemLooks) {
  on_own_host([](const OwnHost& host) {
    Stats stats;
    roce::RelaySet keepers(stats);
    Guarded one(host.address, keepers.at(host.address));
    Guarded two(host.address, keepers.at(one.peer.address));
    Guarded elsewhere(host.another, keepers.at(host.another));
    EXPECT_EQ(one.relay, two.relay);
    EXPECT_NE(one.relay, elsewhere.relay);
    ForeignPeer foreign(host.another);
    foreign.send_cm(two.peer.address, pattern(50, 5));
    EXPECT_TRUE(until({&one}, [&] { return stats.of(Stat::kRelayForwarded) == 1; }));
    EXPECT_TRUE(hears(two, {&two}, pattern(50, 5)));
    foreign.send_cm(one.peer.address, pattern(50, 6));
    EXPECT_TRUE(until({&two}, [&] { return stats.of(Stat::kRelayForwarded) == 2; }));
    EXPECT_TRUE(hears(one, {&one}, pattern(50, 6)));
  });
}

TEST(Port4791Relay, EachAddressHasADoorOfItsOwn) {
  on_own_host([](const OwnHost& host) {
    Guarded one(host.address);
    Guarded two(host.another);
    ForeignPeer foreign(host.address);
    foreign.send_cm(one.peer.address, pattern(20, 7));
    foreign.send_cm(two.peer.address, pattern(20, 8));
    EXPECT_TRUE(hears(one, {&one}, pattern(20, 7)));
    EXPECT_TRUE(hears(two, {&two}, pattern(20, 8)));
    // At another address than its own an endpoint is not, as for anybody else.
    foreign.send_cm(two.at(host.address), pattern(20, 9));
    EXPECT_TRUE(
        until({&one, &two}, [&] { return one.relay_stats.of(Stat::kRelayUnreachable) == 1; }));
    EXPECT_EQ(two.peer.log.messages.size(), 1U);
  });
}

TEST(Port4791Relay, AWildcardEndpointHearsAtEveryAddress) {
  on_own_host([](const OwnHost& host) {
    Guarded everywhere(host.wildcard);
    Guarded besides(host.another);  // hears through the other one
    ForeignPeer foreign(host.address);
    for (const os::SocketAddress& each : {host.address, host.another}) {
      foreign.send_cm(everywhere.at(each), pattern(30, 10));
      EXPECT_TRUE(hears(everywhere, {&everywhere, &besides}, pattern(30, 10))) << each.text();
    }
    foreign.send_cm(besides.peer.address, pattern(30, 11));
    EXPECT_TRUE(hears(besides, {&everywhere, &besides}, pattern(30, 11)));
    EXPECT_EQ(everywhere.relay_stats.of(Stat::kRelayForwarded), 1U);
  });
}

TEST(Port4791Relay, AWildcardEndpointHearsWhereAnotherProcessHasOneAddress) {
  on_own_host([](const OwnHost& host) {
    Guarded one_address(host.another);
    Guarded everywhere(host.wildcard);
    ForeignPeer foreign(host.address);
    for (const os::SocketAddress& each : {host.address, host.another}) {
      foreign.send_cm(everywhere.at(each), pattern(30, 12));
      EXPECT_TRUE(hears(everywhere, {&everywhere, &one_address}, pattern(30, 12))) << each.text();
    }
    EXPECT_EQ(one_address.relay_stats.of(Stat::kRelayForwarded), 1U);
    EXPECT_EQ(everywhere.relay_stats.of(Stat::kRelayDelivered), 1U);
  });
}

TEST(Port4791Relay, APortOfAnotherProcessIsTakenWhenItIsFree) {
  on_own_host([](const OwnHost& host) {
    std::optional<os::UdpSocket> other = squatter(host.address);
    Guarded here(host.address);
    ForeignPeer foreign(host.another);
    foreign.send_cm(here.peer.address, pattern(10, 13));
    EXPECT_EQ(here.peer.heard(), 0U) << "it is the other one's";
    other.reset();
    // Packets that were sent before are lost.
    const auto taken = [&] {
      return !os::UdpSocket::bind(ForeignHand::at_relay(host.address), {});
    };
    EXPECT_TRUE(until({&here}, taken));
    // Repeated: the kernel may drop a datagram while other tests of the machine flood it.
    EXPECT_TRUE(until({&here}, [&] {
      if (here.peer.log.messages.empty()) foreign.send_cm(here.peer.address, pattern(10, 14));
      return !here.peer.log.messages.empty();
    }));
    EXPECT_EQ(here.peer.log.messages.at(0).bytes, pattern(10, 14));
  });
}

TEST(Port4791Relay, WhenTheHolderIsKilledAnotherTakesOver) {
  on_own_host([](const OwnHost& host) {
    std::optional<OtherProcess> holder(std::in_place, [&](const std::function<void()>& ready) {
      Guarded first(host.address);
      ready();
      for (;;) {
        os::wait_readable(first.peer.wake.fd(), milliseconds(5));
        first.peer.endpoint->poll(first.peer.log);
      }
    });
    Guarded one(host.address);
    Guarded two(host.address);
    ForeignPeer foreign(host.another);
    foreign.send_cm(one.peer.address, pattern(10, 15));
    EXPECT_TRUE(hears(one, {&one, &two}, pattern(10, 15))) << "through the first process";
    EXPECT_EQ(one.relay_stats.of(Stat::kRelayDelivered), 0U);
    holder.reset();
    // Sent again and again: packets that arrive while no process has the port are lost.
    for (Guarded* each : {&one, &two}) {
      const std::size_t before = each->peer.log.messages.size();
      EXPECT_TRUE(until({&one, &two}, [&] {
        foreign.send_cm(each->peer.address, pattern(10, 16));
        return each->peer.log.messages.size() > before;
      }));
    }
    EXPECT_NE(one.relay_stats.of(Stat::kRelayDelivered) == 0,
              two.relay_stats.of(Stat::kRelayDelivered) == 0);
  });
}

TEST(Port4791Relay, ASleepingEndpointIsWokenUp) {
  on_own_host([](const OwnHost& host) {
    Guarded holder(host.address);
    Guarded other(host.address);
    ForeignPeer foreign(host.another);
    const auto falls_asleep = [](Guarded& guarded) {
      guarded.peer.endpoint->poll(guarded.peer.log);
      return guarded.peer.endpoint->fall_asleep() &&
             !os::wait_readable(guarded.peer.wake.fd(), milliseconds(0));
    };
    const auto is_woken = [](Guarded& guarded) {
      const bool woken = os::wait_readable(guarded.peer.wake.fd(), milliseconds(20'000));
      guarded.peer.endpoint->wake_up();
      return woken;
    };
    ASSERT_TRUE(falls_asleep(holder) && falls_asleep(other));
    foreign.send_cm(other.peer.address, pattern(10, 17));
    EXPECT_TRUE(is_woken(holder));
    holder.peer.endpoint->poll(holder.peer.log);
    EXPECT_EQ(holder.relay_stats.of(Stat::kRelayForwarded), 1U) << "by the first poll after sleep";
    EXPECT_TRUE(is_woken(other));
    EXPECT_TRUE(hears(other, {&other}, pattern(10, 17)));
    EXPECT_TRUE(falls_asleep(holder) && falls_asleep(other)) << "nothing is left that wakes them";
  });
}

TEST(Port4791Relay, PacketsForAbsentEndpointsDoNotKeepItAwake) {
  on_own_host([](const OwnHost& host) {
    Guarded here(host.address);
    ForeignPeer foreign(host.another);
    os::SocketAddress gone = host.address;
    {
      Guarded left(host.address);
      gone = left.peer.address;
    }
    foreign.send_cm(gone, pattern(10, 18));
    EXPECT_TRUE(until({&here}, [&] { return here.relay_stats.of(Stat::kRelayUnreachable) == 1; }));
    EXPECT_EQ(text_of(here.relay_stats), "relay_unreachable 1");
    EXPECT_TRUE(here.peer.endpoint->fall_asleep());
    EXPECT_FALSE(os::wait_readable(here.peer.wake.fd(), milliseconds(0)));
  });
}

TEST(Port4791Relay, ACaptureShowsPacketsAsTheyCameToTheHost) {
  on_own_host([](const OwnHost& host) {
    Record of_holder;
    Record of_other;
    Guarded holder(host.address, nullptr, &of_holder);
    Guarded other(host.address, nullptr, &of_other);
    ForeignPeer foreign(host.another);
    // One with a wrong ICRC is not relayed; the endpoint that has the port writes its own down.
    for (Guarded* each : {&holder, &other}) {
      Bytes changed = foreign.packet(host.address, each->peer.address.port(), pattern(10, 19));
      changed.back() ^= std::byte{1};
      foreign.send(ForeignHand::at_relay(host.address), changed);
    }
    foreign.send_cm(other.peer.address, pattern(10, 20));
    EXPECT_TRUE(hears(other, {&holder, &other}, pattern(10, 20)));
    ASSERT_EQ(of_holder.entries.size(), 1U);
    EXPECT_EQ(of_holder.entries[0].remark, "dropped: its ICRC is wrong");
    ASSERT_EQ(of_other.entries.size(), 1U);
    EXPECT_EQ(of_other.entries[0].remark, "");
    for (const Record* record : {&of_holder, &of_other}) {
      const Record::Entry& each = record->entries[0];
      EXPECT_EQ(each.direction, wire::CaptureDirection::kReceived);
      EXPECT_EQ(each.route.source_port, foreign.from.port());
      EXPECT_EQ(each.route.destination_port, wire::kUdpPort);
      EXPECT_EQ(each.route.source, roce::route_between(foreign.from, host.address).source);
    }
  });
}

TEST(Port4791Relay, PacketsLostBetweenPollsAreCountedAndTheRestArrives) {
  on_own_host([](const OwnHost& host) {
    Guarded here(host.address);
    ForeignPeer foreign(host.another);
    std::uint64_t sent = 0;
    do {
      for (int i = 0; i < 100; ++i, ++sent) foreign.send_cm(here.peer.address, pattern(4000, 21));
      here.relay->count_overflows();
    } while (here.relay_stats.of(Stat::kRelayOverflows) == 0 && sent < 1'000'000);
    const auto& messages = here.peer.log.messages;
    EXPECT_TRUE(until({&here}, [&] {
      here.relay->count_overflows();
      return messages.size() + here.relay_stats.of(Stat::kRelayOverflows) == sent;
    }));
    EXPECT_GT(messages.size(), 0U);
  });
}

TEST(Port4791Relay, AFloodTakesItsTurns) {
  on_own_host([](const OwnHost& host) {
    Guarded holder(host.address);
    Guarded other(host.address);
    ForeignPeer foreign(host.another);
    constexpr unsigned kMany = 200;
    for (unsigned i = 0; i < kMany; ++i) foreign.send_cm(other.peer.address, pattern(10, i));
    unsigned most = 0;
    const auto all_gone = [&] {
      const std::uint64_t before = holder.relay_stats.of(Stat::kRelayForwarded);
      holder.peer.endpoint->poll(holder.peer.log);
      const std::uint64_t now = holder.relay_stats.of(Stat::kRelayForwarded);
      most = std::max(most, static_cast<unsigned>(now - before));
      return now == kMany;
    };
    EXPECT_TRUE(until({&other}, all_gone));
    EXPECT_LE(most, 32U);
    EXPECT_TRUE(until({&other}, [&] { return other.peer.log.messages.size() == kMany; }));
    for (unsigned i = 0; i < kMany; ++i) {
      EXPECT_TRUE(other.peer.log.messages[i].bytes == pattern(10, i)) << "in order";
    }
  });
}

}  // namespace
}  // namespace weft::udp
