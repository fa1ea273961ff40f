// SPDX-License-Identifier: BSD-2-Clause
// Does each packet that comes to a port reach the owner of its queue pair?
#include "roce/packet_port.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <vector>

#include "bytes_test_support.h"
#include "os/event.h"
#include "os/loopback_support.h"
#include "roce/group_socket.h"
#include "roce/route.h"
#include "wire/cm_message.h"
#include "wire/packet.h"

namespace weft::roce {
namespace {

using testing::Bytes;

constexpr unsigned kAll = 64;
constexpr os::Time kNow{};

// Writes down what a port hands over, in its order.
struct Record final : PacketHandler {
  std::vector<std::uint32_t> packets;  // by PSN
  std::vector<bool> marks;
  std::vector<std::uint64_t> groups;
  std::vector<std::uint32_t> tokens;  // of CNPs
  std::vector<os::UdpError::What> errors;
  std::size_t packets_before_error = 0;

  std::function<void()> when_taken = [] {};
  std::function<void()> when_told = [] {};

  void take(const PacketArrival& arrival) override {
    when_taken();
    packets.push_back(arrival.packet.psn.value());
    marks.push_back(arrival.marked);
    groups.push_back(arrival.group);
  }
  void take_cnp(const PacketArrival& arrival) override {
    tokens.push_back(CongestionNotifier::flow_identity_of(arrival.packet));
  }
  void unreachable(const os::UdpError& error) override {
    errors.push_back(error.what);
    when_told();
    packets_before_error = packets.size();
  }
};

std::unique_ptr<PacketPort> open_port(os::WakeSet& wake, std::uint8_t traffic_class = 0,
                                      Stats& stats = Stats::discarded()) {
  os::UdpSocket::SocketOptions options;
  options.traffic_class = traffic_class;
  auto socket = os::UdpSocket::bind(os::loopback(0), options);
  return std::move(PacketPort::open(std::move(socket).value(), wake, {.stats = &stats})).value();
}

struct PacketPortTest : ::testing::Test {
  os::WakeSet wake = std::move(os::WakeSet::create()).value();  // of `to`
  os::WakeSet wake_of_another = std::move(os::WakeSet::create()).value();
  std::unique_ptr<PacketPort> from = open_port(wake_of_another);
  Stats stats;  // of `to`
  std::unique_ptr<PacketPort> to = open_port(wake, 0, stats);
  Record mine;
  Record other;
  std::uint32_t mine_qpn = attach(*to, mine);
  std::uint32_t other_qpn = attach(*to, other);

  static std::uint32_t attach(PacketPort& port, Record& record, QpnUse use = QpnUse::kQueuePair) {
    return port.attach(record, use, kNow).value();
  }
  static void send(PacketPort& sender, const os::SocketAddress& receiver, std::uint32_t queue_pair,
                   std::uint32_t number, std::span<const std::byte> payload = {}) {
    const Path path{sender.address(), receiver, route_between(sender.address(), receiver)};
    wire::Packet packet;
    packet.opcode =
        wire::opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
    packet.destination = queue_pair;
    packet.source = queue_pair_at(sender.address().port());
    packet.psn = Psn(number);
    const std::span<std::byte> place = sender.trains().place();
    wire::write_headers(packet, 0, place.data());
    const std::size_t headers = wire::header_bytes(packet);
    std::ranges::copy(payload, place.begin() + static_cast<std::ptrdiff_t>(headers));
    sender.trains().add(path, headers + payload.size());
    sender.trains().flush();
  }
  void send(std::uint32_t queue_pair, std::uint32_t number) {
    send(*from, to->address(), queue_pair, number);
  }
  // Polls until so many packets have come, counted ones and others.
  bool come(unsigned packets, unsigned most = kAll) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    unsigned count = 0;
    while (count < packets && std::chrono::steady_clock::now() < end) {
      count += to->poll(most, kAll);
    }
    return count == packets;
  }
};

TEST_F(PacketPortTest, EachQueuePairGetsItsPacketsInOrder) {
  for (std::uint32_t i = 0; i < 6; ++i) send(i % 2 == 0 ? mine_qpn : other_qpn, i);
  ASSERT_TRUE(come(6));
  EXPECT_EQ(mine.packets, (std::vector<std::uint32_t>{0, 2, 4}));
  EXPECT_EQ(other.packets, (std::vector<std::uint32_t>{1, 3, 5}));
  EXPECT_EQ(to->stats().dropped(), 0U);
}

TEST_F(PacketPortTest, PacketsForAnUnknownQueuePairAreCounted) {
  send(mine_qpn + 7, 1);
  send(wire::kMulticastQpn, 2);
  to->detach(other_qpn, kNow);
  send(other_qpn, 3);
  ASSERT_TRUE(come(3));
  EXPECT_TRUE(mine.packets.empty());
  EXPECT_TRUE(other.packets.empty());
  EXPECT_EQ(to->stats().of(Stat::kUnknownQp), 3U);
}

TEST_F(PacketPortTest, AHandlerThatIsDetachedDuringABatchGetsNothingOfItsRest) {
  for (std::uint32_t i = 0; i < 8; ++i) send(i % 2 == 0 ? mine_qpn : other_qpn, i);
  mine.when_taken = [&] {
    if (mine.packets.size() != 1) return;
    to->detach(mine_qpn, kNow);
    to->detach(other_qpn, kNow);
  };
  ASSERT_TRUE(come(8));
  EXPECT_EQ(mine.packets, (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(other.packets, (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(to->stats().of(Stat::kUnknownQp), 5U);
}

TEST_F(PacketPortTest, AHandlerThatAnotherOneDetachedIsToldOfNoError) {
  for (Record* each : {&mine, &other}) {
    each->when_told = [&] {
      to->detach(mine_qpn, kNow);
      to->detach(other_qpn, kNow);
    };
  }
  os::SocketAddress closed = open_port(wake_of_another)->address();
  send(*to, closed, mine_qpn, 0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto errors = [&] { return mine.errors.size() + other.errors.size(); };
  while (errors() == 0 && std::chrono::steady_clock::now() < end) to->poll(kAll, kAll);
  EXPECT_EQ(errors(), 1U);
}

TEST_F(PacketPortTest, NoMoreIsHandedOverAtATimeThanAskedFor) {
  for (std::uint32_t i = 0; i < 5; ++i) send(mine_qpn, i);
  ASSERT_TRUE(os::wait_readable(wake.fd(), std::chrono::seconds(20)));
  while (mine.packets.size() < 5) {
    const std::size_t before = mine.packets.size();
    to->poll(1, kAll);
    ASSERT_LE(mine.packets.size(), before + 1);
    EXPECT_TRUE(!to->busy() || !to->fall_asleep());
  }
  EXPECT_EQ(mine.packets, (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
}

TEST_F(PacketPortTest, AMarkedPacketIsHandedOverAsSuchAndItsSenderGetsACnpWithTheFlowIdentity) {
  constexpr std::uint8_t kMarked = 3;
  os::WakeSet set = std::move(os::WakeSet::create()).value();
  const auto sender = open_port(set, kMarked);
  Record notified;
  const std::uint32_t notified_qpn = attach(*sender, notified, QpnUse::kEndpoint);
  send(*sender, to->address(), mine_qpn, 1);
  ASSERT_TRUE(come(1));
  ASSERT_EQ(mine.marks, (std::vector<bool>{true}));
  const Path back{to->address(), sender->address(),
                  route_between(to->address(), sender->address())};
  const os::Time now = std::chrono::steady_clock::now();
  to->send_cnp(back, notified_qpn, 0xABCD, now);
  to->send_cnp(back, notified_qpn, 0xABCD, now);  // too soon
  ASSERT_TRUE(os::wait_readable(set.fd(), std::chrono::seconds(20)));
  while (sender->poll(kAll, kAll) != 0) continue;
  EXPECT_EQ(notified.tokens, (std::vector<std::uint32_t>{0xABCD}));
}

TEST_F(PacketPortTest, AnIcmpErrorIsReportedOnceToEachHandlerAfterThePacketsBeforeIt) {
  attach(*to, mine);  // two queue pairs of one handler
  os::SocketAddress closed = open_port(wake_of_another)->address();
  send(mine_qpn, 1);
  send(*to, closed, mine_qpn, 0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (mine.errors.empty() && std::chrono::steady_clock::now() < end) to->poll(kAll, kAll);
  EXPECT_EQ(mine.errors, (std::vector{os::UdpError::What::kPortUnreachable}));
  EXPECT_EQ(mine.packets_before_error, 1U);
  EXPECT_EQ(other.errors, mine.errors);
}

TEST_F(PacketPortTest, PacketsToAGroupHaveItsNumberAndOnlyWhileItIsHeard) {
  const os::SocketAddress group = os::address_of("239.7.7.7", from->address().port());
  attach(*to, mine, QpnUse::kGroups);
  auto heard = GroupSocket::join(*to, group, 9);
  if (!heard) GTEST_SKIP() << heard.error().message;
  const auto own = from->send_to_group(group, true);
  if (!own) GTEST_SKIP() << own.error().message;
  send(*from, group, wire::kMulticastQpn, 4);
  ASSERT_TRUE(come(1));
  EXPECT_EQ(mine.groups, (std::vector<std::uint64_t>{9}));
  heard.value().reset();
  send(*from, group, wire::kMulticastQpn, 5);
  send(mine_qpn, 6);
  ASSERT_TRUE(come(1));
  EXPECT_EQ(mine.packets, (std::vector<std::uint32_t>{4, 6}));
}

// The kernel looks for sleepers at each packet while the socket is in the set.
TEST_F(PacketPortTest, APortThatIsOnlyPolledLeavesTheWakeSetUntilItSleepsAgain) {
  const auto readable = [&](int ms) {
    return os::wait_readable(wake.fd(), std::chrono::milliseconds(ms));
  };
  const auto poll_often = [&] {
    for (int i = 0; i < 10'000; ++i) to->poll(kAll, kAll);
  };
  poll_often();
  send(mine_qpn, 1);
  EXPECT_FALSE(readable(20));
  EXPECT_TRUE(to->fall_asleep());
  EXPECT_TRUE(readable(0)) << "what has come before";
  ASSERT_TRUE(come(1));
  poll_often();
  send(mine_qpn, 2);
  EXPECT_TRUE(readable(20'000)) << "another thread sleeps still";
  to->wake_up();
  ASSERT_TRUE(come(1));
  poll_often();
  send(mine_qpn, 3);
  EXPECT_FALSE(readable(20));
}

TEST_F(PacketPortTest, APortThatEndedWakesNoThreadThoughItsSocketLives) {
  const auto bound = std::move(os::UdpPort::bind(os::loopback(0))).value();
  auto port =
      PacketPort::open(std::move(os::UdpSocket::over(bound, {})).value(), wake_of_another, {});
  ASSERT_TRUE(port);
  port.value().reset();
  send(*to, bound.address(), mine_qpn, 1);
  EXPECT_FALSE(os::wait_readable(wake_of_another.fd(), std::chrono::milliseconds(20)));
}

}  // namespace
}  // namespace weft::roce
