// SPDX-License-Identifier: BSD-2-Clause
// Do members of a group, and no other sockets, receive what is sent to it on its interface?
#include <gtest/gtest.h>

#include <vector>

#include "os/event.h"
#include "os/interfaces.h"
#include "os/loopback_support.h"
#include "os/udp_socket.h"

namespace weft::os {
namespace {

unsigned loopback_index() {
  const auto interfaces = usable_interfaces();
  const Interface* owner = owner_of(interfaces.value(), loopback(0));
  return owner == nullptr ? 0 : owner->index;
}

struct UdpGroupTest : ::testing::Test {
  UdpSocket sender = std::move(UdpSocket::bind(loopback(0), {})).value();
  // Ports of the kernel's choice: tests beside this one have others.
  SocketAddress group = address_of("239.255.7.1", sender.address().port());
  const unsigned here = loopback_index();

  UdpSocket member() { return std::move(UdpSocket::join(group, here, {})).value(); }
  // Waits for so many, and takes all that has come.
  std::size_t heard(const UdpSocket& socket, std::size_t expected) {
    UdpBatch batch(4);
    std::size_t datagrams = 0;
    while (datagrams < expected && wait_readable(socket.fd(), std::chrono::seconds(20)) &&
           socket.receive(batch) == 0) {
      batch.for_each([&](const Datagram& datagram) {
        ++datagrams;
        EXPECT_EQ(datagram.to, group);
        EXPECT_EQ(datagram.from, sender.address());
      });
    }
    return datagrams;
  }
  void send(const SocketAddress& to, std::size_t datagrams = 1) {
    const std::vector<std::byte> bytes(datagrams * 100);
    EXPECT_EQ(sender.send(to, {}, bytes, 100).error, 0);
  }
};

TEST_F(UdpGroupTest, EveryMemberHearsTrainsToo) {
  const UdpSocket members[] = {member(), member(), member()};
  ASSERT_TRUE(sender.send_to_group_by(group, here, true).ok());
  send(group);
  send(group, 5);
  for (const UdpSocket& each : members) EXPECT_EQ(heard(each, 6), 6u);
}

TEST_F(UdpGroupTest, OtherGroupsAndFormerMembersReceiveNothing) {
  const SocketAddress elsewhere = address_of("239.255.7.2", group.port());
  const UdpSocket other = std::move(UdpSocket::join(elsewhere, here, {})).value();
  const UdpSocket stays = member();
  { const UdpSocket leaves = member(); }
  ASSERT_TRUE(sender.send_to_group_by(group, here, true).ok());
  send(group);
  EXPECT_EQ(heard(stays, 1), 1u);
  EXPECT_FALSE(wait_readable(other.fd(), std::chrono::milliseconds(0)));
}

TEST_F(UdpGroupTest, UnicastAddressesAreRefused) {
  EXPECT_EQ(UdpSocket::join(loopback(5000), here, {}).error().code, EINVAL);
  EXPECT_EQ(UdpSocket::join(address_of("239.255.7.1", 0), here, {}).error().code, EINVAL);
  EXPECT_EQ(UdpSocket::join(group, 0x7fffffff, {}).error().code, ENODEV);
  EXPECT_FALSE(sender.send_to_group_by(group, 0x7fffffff, true).ok());
}

}  // namespace
}  // namespace weft::os
