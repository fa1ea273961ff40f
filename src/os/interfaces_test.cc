// SPDX-License-Identifier: BSD-2-Clause
// Are interfaces listed as the kernel has them, and is a peer's address told from our own?
#include "os/interfaces.h"
#include "os/loopback_support.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace weft::os {
namespace {

// A list that does not depend on the machine.
std::vector<Interface> two_interfaces() {
  return {{"net0", 2, false, {{address_of("192.0.2.2"), 24}, {address_of("2001:db8::2"), 64}}},
          {"lo", 1, true, {{address_of("127.0.0.1"), 8}, {address_of("::1"), 128}}}};
}

TEST(UsableInterfaces, IncludeTheLoopbackWithItsAddress) {
  const auto list = usable_interfaces();
  ASSERT_TRUE(list.ok()) << list.error().message;
  const auto found = std::ranges::find_if(list.value(), &Interface::loopback);
  ASSERT_NE(found, list.value().end());
  ASSERT_FALSE(found->addresses.empty());
  EXPECT_EQ(found->addresses.front().address.host(), "127.0.0.1");
  EXPECT_EQ(found->addresses.front().prefix_length, 8U);
}

TEST(UsableInterfaces, SayHowLongAPacketMayBeAndThatTheLoopbackHasGroups) {
  const auto list = usable_interfaces();
  ASSERT_TRUE(list.ok());
  for (const Interface& interface : list.value()) {
    EXPECT_GE(interface.mtu, 68U) << interface.name << ": no network has less";
    if (interface.loopback) {
      EXPECT_TRUE(interface.multicast);
    }
  }
}

TEST(UsableInterfaces, ListTheLoopbackLastAndTheOthersByIndex) {
  const auto list = usable_interfaces();
  ASSERT_TRUE(list.ok());
  EXPECT_TRUE(std::ranges::is_sorted(
      list.value(), {}, [](const Interface& i) { return std::pair(i.loopback, i.index); }));
}

TEST(UsableInterfaces, HaveAddressesWithPortZeroAndNoLinkLocalOnes) {
  const auto list = usable_interfaces();
  ASSERT_TRUE(list.ok());
  for (const Interface& interface : list.value()) {
    EXPECT_FALSE(interface.addresses.empty()) << interface.name;
    for (const InterfaceAddress& own : interface.addresses) {
      EXPECT_EQ(own.address.port(), 0) << interface.name;
      EXPECT_FALSE(own.address.host().starts_with("fe80")) << interface.name;
    }
  }
}

TEST(LocalAddress, EveryListedAddressIsLocalWhateverThePort) {
  const auto list = usable_interfaces();
  ASSERT_TRUE(list.ok());
  for (const Interface& interface : list.value()) {
    for (InterfaceAddress own : interface.addresses) {
      own.address.set_port(4791);
      EXPECT_TRUE(is_local_address(own.address.get())) << own.address.text();
    }
  }
}

TEST(LocalAddress, AllOfTheIpv4LoopbackNetworkIsLocal) {
  EXPECT_TRUE(is_local_address(address_of("127.0.0.1").get()));
  EXPECT_TRUE(is_local_address(address_of("127.9.8.7").get()));
}

TEST(LocalAddress, AForeignAddressIsNotLocal) {
  EXPECT_FALSE(is_local_address(address_of("203.0.113.77").get()));
  EXPECT_FALSE(is_local_address(address_of("2001:db8:ffff::77").get()));
}

TEST(LocalAddress, NoAddressAndOtherFamiliesAreNotLocal) {
  sockaddr other{};
  other.sa_family = AF_UNIX;
  EXPECT_FALSE(is_local_address(static_cast<const sockaddr*>(nullptr)));
  EXPECT_FALSE(is_local_address(&other));
}

TEST(OwnerOf, IsTheInterfaceWithExactlyThatAddress) {
  const auto list = two_interfaces();
  ASSERT_NE(owner_of(list, address_of("2001:db8::2", 99)), nullptr);
  EXPECT_EQ(owner_of(list, address_of("2001:db8::2", 99))->name, "net0");
  EXPECT_EQ(owner_of(list, address_of("127.1.2.3"))->name, "lo");
}

TEST(OwnerOf, ANeighbourInTheSubnetHasNoOwnerHere) {
  EXPECT_EQ(owner_of(two_interfaces(), address_of("192.0.2.3")), nullptr);
  EXPECT_EQ(owner_of(two_interfaces(), address_of("2001:db8::3")), nullptr);
}

TEST(SourceTowards, TheLoopbackIsTheLoopback) {
  const auto source = source_towards(address_of("127.0.0.1", 7));
  ASSERT_TRUE(source.ok()) << source.error().message;
  EXPECT_EQ(source.value(), address_of("127.0.0.1"));
}

TEST(SourceTowards, AnOwnAddressIsThatAddress) {
  const auto list = usable_interfaces();
  ASSERT_TRUE(list.ok());
  for (const Interface& interface : list.value()) {
    const SocketAddress own = interface.addresses.front().address;
    const auto source = source_towards(own);
    ASSERT_TRUE(source.ok()) << source.error().message;
    EXPECT_EQ(source.value(), own);
  }
}

TEST(SourceTowards, NoAddressIsAnError) { EXPECT_FALSE(source_towards(SocketAddress()).ok()); }

TEST(Subnet, IsWrittenInCidrNotation) {
  EXPECT_EQ(subnet_text({address_of("192.0.2.77"), 24}), "192.0.2.0/24");
  EXPECT_EQ(subnet_text({address_of("10.9.255.1"), 13}), "10.8.0.0/13");
  EXPECT_EQ(subnet_text({address_of("2001:db8::77"), 64}), "2001:db8::/64");
  EXPECT_EQ(subnet_text({address_of("::1"), 128}), "::1/128");
  EXPECT_EQ(subnet_text({address_of("192.0.2.77"), 0}), "0.0.0.0/0");
}

TEST(Subnet, HoldsAddressesOfItsPrefixAndFamilyOnly) {
  const InterfaceAddress of{address_of("10.8.0.1"), 13};
  EXPECT_TRUE(in_subnet(of, address_of("10.15.255.255")));
  EXPECT_FALSE(in_subnet(of, address_of("10.16.0.0")));
  EXPECT_FALSE(in_subnet(of, address_of("::1")));
}

}  // namespace
}  // namespace weft::os
