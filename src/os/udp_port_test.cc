// SPDX-License-Identifier: BSD-2-Clause
// Are addresses read and written as they are, and is a bound port exclusive?
#include "os/udp_port.h"
#include "os/loopback_support.h"
#include "os/own_process_support.h"
#include "udp_listeners.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

namespace weft::os {
namespace {

TEST(SocketAddress, BothFamiliesAreReadAndWritten) {
  EXPECT_EQ(address_of("192.0.2.1", 4791).text(), "192.0.2.1:4791");
  EXPECT_EQ(address_of("2001:db8::1", 4791).text(), "[2001:db8::1]:4791");
  EXPECT_EQ(address_of("192.0.2.1", 0).length(), sizeof(sockaddr_in));
  EXPECT_EQ(address_of("::1", 0).length(), sizeof(sockaddr_in6));
  EXPECT_EQ(address_of("::1", 0).family(), AF_INET6);
}

TEST(SocketAddress, AnEmptyOneHasNoFamilyAndNoLength) {
  const SocketAddress empty;
  EXPECT_EQ(empty.family(), AF_UNSPEC);
  EXPECT_EQ(empty.length(), 0U);
  EXPECT_EQ(empty, SocketAddress{});
  EXPECT_FALSE(empty == address_of("0.0.0.0", 0));
}

TEST(SocketAddress, FewerBytesThanTheFamilyNeedsAreRefused) {
  const SocketAddress four = address_of("192.0.2.1", 1);
  const SocketAddress six = address_of("::1", 1);
  for (std::size_t length = 0; length < sizeof(sockaddr_in); ++length) {
    EXPECT_FALSE(SocketAddress::parse(four.get(), length).ok()) << length;
  }
  for (std::size_t length = 0; length < sizeof(sockaddr_in6); ++length) {
    EXPECT_FALSE(SocketAddress::parse(six.get(), length).ok()) << length;
  }
  EXPECT_TRUE(SocketAddress::parse(six.get(), sizeof(sockaddr_in6)).ok());
  EXPECT_TRUE(SocketAddress::parse(four.get(), sizeof(sockaddr_in)).ok());
}

TEST(SocketAddress, NoBytesAndOtherFamiliesAreRefused) {
  std::array<char, 64> raw{};
  const sa_family_t family = AF_UNIX;
  std::memcpy(raw.data(), &family, sizeof family);
  const auto other = SocketAddress::parse(raw.data(), raw.size());
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, EINVAL);
  EXPECT_FALSE(SocketAddress::parse(nullptr, 64).ok());
}

TEST(SocketAddress, HostPortAndScopeMakeItDifferent) {
  EXPECT_EQ(address_of("192.0.2.1", 1), address_of("192.0.2.1", 1));
  EXPECT_FALSE(address_of("192.0.2.1", 1) == address_of("192.0.2.1", 2));
  EXPECT_FALSE(address_of("192.0.2.1", 1) == address_of("192.0.2.2", 1));
  EXPECT_FALSE(address_of("fe80::1", 1, 1) == address_of("fe80::1", 1, 2));
  EXPECT_FALSE(address_of("0.0.0.0", 0) == address_of("::", 0));
}

TEST(SocketAddress, GroupsAreToldFromHosts) {
  for (const char* group : {"224.0.0.0", "224.0.1.1", "239.255.255.255"}) {
    EXPECT_TRUE(address_of(group, 5000).is_multicast()) << group;
  }
  for (const char* host : {"223.255.255.255", "240.0.0.0", "127.0.0.1", "0.0.0.0"}) {
    EXPECT_FALSE(address_of(host, 5000).is_multicast()) << host;
  }
  EXPECT_TRUE(address_of("ff02::1", 0).is_multicast());
  EXPECT_FALSE(address_of("fe80::1", 0).is_multicast());
  EXPECT_FALSE(SocketAddress{}.is_multicast());
}

TEST(SocketAddress, PartsThatDoNotNameThePeerAreLeftOut) {
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_zero[3] = 'x';
  const auto read = SocketAddress::parse(&four, sizeof four);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(reinterpret_cast<const sockaddr_in*>(read.value().get())->sin_zero[3], 0);
}

TEST(SocketAddress, AnyAddressIsTheUnspecifiedOneOfItsFamily) {
  EXPECT_TRUE(address_of("0.0.0.0", 5).is_any());
  EXPECT_TRUE(address_of("::", 5).is_any());
  EXPECT_FALSE(address_of("0.0.0.1", 0).is_any());
  EXPECT_FALSE(address_of("::1", 0).is_any());
}

TEST(SocketAddress, ThePortCanBeSet) {
  for (SocketAddress address : {address_of("192.0.2.1", 1), address_of("::1", 1)}) {
    address.set_port(65535);
    EXPECT_EQ(address.port(), 65535);
  }
}

TEST(UdpPort, PortZeroGivesAFreeOne) {
  const auto first = UdpPort::bind(address_of("127.0.0.1", 0));
  const auto second = UdpPort::bind(address_of("127.0.0.1", 0));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first.value().address().port(), 0);
  EXPECT_NE(first.value().address().port(), second.value().address().port());
  EXPECT_EQ(first.value().address().host(), "127.0.0.1");
}

TEST(UdpPort, APortThatIsHeldIsRefusedAndOneThatWasLetGoIsNot) {
  SocketAddress address;
  {
    const auto first = UdpPort::bind(address_of("127.0.0.1", 0));
    ASSERT_TRUE(first.ok());
    address = first.value().address();
    const auto second = UdpPort::bind(address);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, EADDRINUSE);
  }
  EXPECT_TRUE(UdpPort::bind(address).ok());
}

TEST(UdpPort, AnAddressOfAnotherHostIsRefused) {
  const auto port = UdpPort::bind(address_of("192.0.2.1", 0));
  ASSERT_FALSE(port.ok());
  EXPECT_EQ(port.error().code, EADDRNOTAVAIL);
}

TEST(UdpPort, NoAddressAtAllIsRefused) { EXPECT_FALSE(UdpPort::bind(SocketAddress{}).ok()); }

TEST(UdpPort, TheSamePortOfBothFamiliesCanBeHeld) {
  // The system chooses the port for IPv6 alone: another process may hold it for IPv4.
  for (int ports = 0; ports < 16; ++ports) {
    const auto six = UdpPort::bind(address_of("::", 0));
    if (!six.ok()) GTEST_SKIP() << "this system has no IPv6";
    if (UdpPort::bind(address_of("0.0.0.0", six.value().address().port())).ok()) return;
  }
  FAIL() << "none of 16 ports";
}

TEST(UdpPort, UntilASocketTakesItOverThePortDoesNotListen) {
  for (const SocketAddress& wanted : {address_of("127.0.0.1", 0), address_of("::1", 0)}) {
    const auto port = UdpPort::bind(wanted);
    if (!port && wanted.family() == AF_INET6) GTEST_SKIP() << "no IPv6";
    ASSERT_TRUE(port.ok());
    EXPECT_FALSE(has_listener(port.value().address()));
    EXPECT_TRUE(port.value().open() != nullptr);
    EXPECT_TRUE(has_listener(port.value().address()));
    EXPECT_TRUE(is_listed(port.value().address()));
    EXPECT_TRUE(found_by_kernel(port.value().address()).value_or(true));
    EXPECT_FALSE(UdpPort::bind(port.value().address()).ok()) << "it is still its owner's";
    SocketAddress other = port.value().address();
    other.set_port(static_cast<std::uint16_t>(other.port() ^ 1));
    if (const auto neighbour = UdpPort::bind(other)) {
      EXPECT_FALSE(has_listener(other));
    }
  }
}

// A thief of the same user stands for one of another: the kernel does not compare users when both
// sockets have SO_REUSEADDR.
TEST(UdpPort, NoOtherSocketGetsThePortWhileItIsOpened) {
  for (const SocketAddress& wanted : {address_of("127.0.0.1", 0), address_of("::1", 0)}) {
    std::atomic<std::uint16_t> target{0};
    std::atomic<bool> done{false};
    unsigned stolen = 0;
    std::thread thief([&] {
      while (!done) {
        SocketAddress address = wanted;
        address.set_port(target);
        const Fd fd(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
        const int yes = 1;
        ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        while (address.port() != 0 && target == address.port()) {
          if (::bind(fd.get(), address.get(), address.length()) != 0) continue;
          if (target == address.port()) ++stolen;  // else its owner has given it up
          break;
        }
      }
    });
    for (int round = 0; round < 2'000; ++round) {
      const auto port = UdpPort::bind(wanted);
      if (!port) break;  // this system has no IPv6
      target = port.value().address().port();
      EXPECT_TRUE(port.value().open() != nullptr);
      target = 0;
    }
    done = true;
    thief.join();
    EXPECT_EQ(stolen, 0U);
  }
}

// Many others, so that no list of all of them fits one read; they come and go all the time.
TEST(UdpPort, AListenerIsFoundWhileOthersComeAndGo) {
  for (const SocketAddress& wanted : {address_of("127.0.0.1", 0), address_of("::1", 0)}) {
    std::vector<UdpPort> ports;
    for (int i = 0; i < 100; ++i) {
      auto port = UdpPort::bind(wanted);
      if (!port && wanted.family() == AF_INET6) GTEST_SKIP() << "no IPv6";
      ASSERT_TRUE(port.ok());
      ports.push_back(std::move(port).value());
      ASSERT_TRUE(ports.back().open() != nullptr);
    }
    std::atomic<bool> done{false};
    std::thread others([&] {
      std::vector<UdpPort> of_others;
      while (!done) {
        if (auto port = UdpPort::bind(wanted)) of_others.push_back(std::move(port).value());
        if (of_others.size() > 100) of_others.erase(of_others.begin(), of_others.begin() + 50);
      }
    });
    unsigned overlooked = 0;
    for (int round = 0; round < 10; ++round) {
      for (const UdpPort& port : ports) {
        overlooked += has_listener(port.address()) ? 0 : 1;
        if (round == 0) overlooked += is_listed(port.address()) ? 0 : 1;
      }
    }
    done = true;
    others.join();
    EXPECT_EQ(overlooked, 0U);
  }
}

// In a namespace where no other process opens and closes sockets.
TEST(UdpPort, OneAddressIsLookedForLikeTheListOfAll) {
  in_own_process("a network namespace", [] {
    if (!enter_empty_network()) return false;
    const auto port = UdpPort::bind(address_of("0.0.0.0", 0));
    const std::uint16_t number = port.value().address().port();
    const auto here = address_of("192.0.2.1", number);
    EXPECT_TRUE(is_listed(here));
    EXPECT_TRUE(found_by_kernel(here).value_or(true));
    const auto nowhere = address_of("192.0.2.1", static_cast<std::uint16_t>(number ^ 1));
    EXPECT_FALSE(is_listed(nowhere));
    EXPECT_FALSE(found_by_kernel(nowhere).value_or(false));
    EXPECT_FALSE(has_listener(nowhere));
    return true;
  });
}

TEST(UdpPort, AListenerAtTheUnspecifiedAddressListensEverywhere) {
  const auto port = UdpPort::bind(address_of("0.0.0.0", 0));
  ASSERT_TRUE(port.ok());
  EXPECT_TRUE(has_listener(address_of("127.0.0.1", port.value().address().port())));
}

}  // namespace
}  // namespace weft::os
