// SPDX-License-Identifier: BSD-2-Clause
// Does every member of a multicast group, and no other socket, receive what is sent to it over the
// network?
#include <gtest/gtest.h>

#include <optional>

#include "datagram_test_support.h"
#include "os/event.h"
#include "os/interfaces.h"
#include "roce/route.h"

namespace weft::udp {
namespace {

using namespace testing;

struct DatagramGroup : ::testing::Test {
  DatagramPeer a;
  DatagramPeer b;
  DatagramPeer c;
  // With a port of the kernel's choice: tests beside this one have others.
  const os::SocketAddress group = os::address_of("239.255.7.9", a.address.port());

  static link::Membership join(DatagramPeer& peer, const os::SocketAddress& what) {
    auto joined = peer.endpoint->join(what);
    EXPECT_TRUE(joined.ok()) << joined.error().message;
    return joined ? std::move(joined).value() : nullptr;
  }
  static std::unique_ptr<link::Flow> reach(DatagramPeer& peer, const os::SocketAddress& what) {
    auto flow = peer.endpoint->connect_group(what);
    EXPECT_TRUE(flow.ok()) << flow.error().message;
    return flow ? std::move(flow).value() : nullptr;
  }
};

// An address of an interface that is not the loopback and has groups.
std::optional<os::SocketAddress> outward(int family) {
  const auto interfaces = os::usable_interfaces();
  for (const os::Interface& each : interfaces.value()) {
    if (each.loopback || !each.multicast) continue;
    for (const os::InterfaceAddress& one : each.addresses) {
      if (one.address.family() == family) return one.address;
    }
  }
  return std::nullopt;
}

TEST_F(DatagramGroup, EveryMemberHearsAndTheSenderToo) {
  const link::Membership members[] = {join(a, group), join(b, group), join(c, group)};
  const auto flow = reach(a, group);
  for (int i = 0; i < 50; ++i) send(*flow, pattern(101, 1), true);
  a.endpoint->poll(a.log);
  for (DatagramPeer* each : {&a, &b, &c}) {
    ASSERT_EQ(each->heard(50), 50u);
    const auto& message = each->log.messages.back();
    EXPECT_EQ(message.arrival.tag, link::group_number(group));
    EXPECT_EQ(message.arrival.data, 0xF000'0000 + 101);
    EXPECT_TRUE(message.bytes == pattern(101, 1));
    ASSERT_EQ(each->log.opened.size(), 1u);
    EXPECT_EQ(each->log.opened[0].second, a.address);
  }
}

TEST_F(DatagramGroup, EndpointsOutsideTheGroupReceiveNothing) {
  const auto other_port = join(b, os::address_of("239.255.7.9", b.address.port()));
  const auto other_group = join(b, os::address_of("239.255.7.10", group.port()));
  auto member = join(c, group);
  const auto flow = reach(a, group);
  send(*flow, pattern(100, 1));
  EXPECT_EQ(c.heard(1), 1u);
  send(*flow, pattern(100, 1));
  member.reset();
  send(*flow, pattern(100, 1));
  EXPECT_EQ(c.heard(), 1u) << "not even what was under way";
  EXPECT_EQ(a.heard() + b.heard(), 0u);
  EXPECT_EQ(a.lost() + b.lost() + c.lost(), 0u);
  member = join(c, group);
  send(*flow, pattern(100, 1));
  EXPECT_EQ(c.heard(2), 2u);
}

TEST_F(DatagramGroup, DatagramsReadAlreadyGoWithTheirMembership) {
  auto member = join(b, group);
  const auto flow = reach(a, group);
  const auto direct = a.to(b.address);
  for (int i = 0; i < 100; ++i) send(*flow, pattern(100, 1));
  while (b.log.messages.size() < 64) b.endpoint->poll(b.log);
  const std::size_t before = b.log.messages.size();
  member.reset();
  EXPECT_EQ(b.heard(), before);
  send(*direct, pattern(100, 1));
  EXPECT_EQ(b.heard(before + 1), before + 1);
}

TEST_F(DatagramGroup, AGroupWakesASleeper) {
  auto member = join(b, group);
  ASSERT_TRUE(b.endpoint->fall_asleep());
  const auto readable = [&] {
    return os::wait_readable(b.wake.fd(), std::chrono::milliseconds(0));
  };
  const auto flow = reach(a, group);
  EXPECT_FALSE(readable());
  send(*flow, pattern(100, 1));
  EXPECT_TRUE(os::wait_readable(b.wake.fd(), std::chrono::seconds(20)));
  member.reset();
  EXPECT_FALSE(readable());
}

TEST_F(DatagramGroup, ASenderWithoutEndLeavesGroupsTheirTurn) {
  const auto member = join(b, group);
  const auto flow = reach(a, group);
  const auto direct = c.to(b.address);
  send(*flow, pattern(50, 1));
  const auto of_group = [](const auto& message) { return message.arrival.tag != 0; };
  for (int round = 0; std::none_of(b.log.messages.begin(), b.log.messages.end(), of_group);) {
    // More than a poll hands over.
    for (int i = 0; i < 100; ++i) send(*direct, pattern(100, 1));
    b.endpoint->poll(b.log);
    ASSERT_LT(++round, 1'000);
  }
}

TEST_F(DatagramGroup, AddressesThatCannotBeJoinedAreRefused) {
  EXPECT_EQ(a.endpoint->join(b.address).error().code, EINVAL);
  EXPECT_EQ(a.endpoint->join(os::address_of("239.255.7.9", 0)).error().code, EINVAL);
  EXPECT_EQ(a.endpoint->join(os::address_of("ff15::1", 5000)).error().code, ENETUNREACH);
  EXPECT_EQ(a.endpoint->connect_group(os::address_of("ff15::1", 5000)).error().code, ENETUNREACH);
}

TEST_F(DatagramGroup, AWildcardTakesTheInterfaceThatLeadsThere) {
  DatagramPeer everywhere({}, os::address_of("0.0.0.0", 0));
  DatagramPeer other({}, os::address_of("0.0.0.0", 0));
  const auto member = join(other, group);
  const auto flow = reach(everywhere, group);
  send(*flow, pattern(100, 1));
  ASSERT_TRUE(os::wait_readable(other.wake.fd(), std::chrono::seconds(20)));
  EXPECT_EQ(other.heard(), 1u);
}

TEST_F(DatagramGroup, OnRequestMembersOnTheSendersHostHearNothing) {
  const auto at = outward(AF_INET);
  if (!at) GTEST_SKIP() << "no interface but the loopback has groups";
  DatagramPeer mute({.loops_groups = false}, *at);
  DatagramPeer loud({}, *at);
  DatagramPeer listener({}, *at);
  const auto member = join(listener, group);
  send(*reach(mute, group), pattern(100, 1));
  send(*reach(loud, group), pattern(100, 1));
  ASSERT_TRUE(os::wait_readable(listener.wake.fd(), std::chrono::seconds(20)));
  EXPECT_EQ(listener.heard(), 1u);
  EXPECT_EQ(listener.log.opened.at(0).second, loud.address);
}

TEST_F(DatagramGroup, OverIPv6TheSameHolds) {
  const auto at = outward(AF_INET6);
  if (!at) GTEST_SKIP() << "no interface but the loopback has groups of IPv6";
  DatagramPeer sender({}, *at);
  DatagramPeer listener({}, *at);
  for (const char* host : {"ff02::7:9", "ff15::7:9"}) {
    const os::SocketAddress six = os::address_of(host, group.port());
    const auto member = join(listener, six);
    const std::size_t before = listener.heard();
    send(*reach(sender, six), pattern(100, 1));
    ASSERT_TRUE(os::wait_readable(listener.wake.fd(), std::chrono::seconds(20)));
    ASSERT_EQ(listener.heard(), before + 1);
    EXPECT_EQ(listener.log.messages.back().arrival.tag, link::group_number(six));
  }
}

}  // namespace
}  // namespace weft::udp
