// SPDX-License-Identifier: BSD-2-Clause
// How do tests get a host for themselves, where port 4791 is theirs and nobody else's?
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "os/fd.h"
#include "os/udp_port.h"

namespace weft::udp::testing {

// That address, with port 0.
inline os::SocketAddress address_of(const std::string& host) {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  v4.sin_family = AF_INET;
  v6.sin6_family = AF_INET6;
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    return os::SocketAddress::parse(&v4, sizeof v4).value();
  }
  EXPECT_EQ(::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr), 1) << host;
  return os::SocketAddress::parse(&v6, sizeof v6).value();
}

// A host as its endpoints see it, in one family of addresses: two addresses and a wildcard.
struct OwnHost {
  os::SocketAddress address;
  os::SocketAddress another;
  os::SocketAddress wildcard;
};

// Gives the loopback interface of this network namespace addresses; false where that fails.
inline bool add_addresses() {
  const os::Fd v4(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  request.ifr_name[0] = 'l';
  request.ifr_name[1] = 'o';
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(v4.get(), SIOCSIFFLAGS, &request) != 0) return false;
  ifreq more{};
  std::string("lo:1").copy(more.ifr_name, sizeof more.ifr_name - 1);
  const os::SocketAddress address = address_of("10.77.0.1");
  std::memcpy(&more.ifr_addr, address.get(), address.length());
  return ::ioctl(v4.get(), SIOCSIFADDR, &more) == 0;
}

// The same for IPv6, which not every host has.
inline bool add_ipv6_address() {
  const os::Fd v6(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  in6_ifreq request{};
  const os::SocketAddress address = address_of("fd77::1");
  request.ifr6_addr = reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr;
  request.ifr6_prefixlen = 64;
  request.ifr6_ifindex = static_cast<int>(::if_nametoindex("lo"));
  if (!v6.valid() || ::ioctl(v6.get(), SIOCSIFADDR, &request) != 0) return false;
  // The kernel makes the address usable in a thread of its own.
  for (int i = 0; i < 5'000; ++i) {
    if (os::UdpPort::bind(address).ok()) return true;
    ::usleep(1'000);
  }
  return false;
}

// Ends a process of this test, which has not ended by itself.
inline void kill_and_wait(pid_t process) {
  ::kill(process, SIGKILL);
  int status = 0;
  ::waitpid(process, &status, 0);
}

// Runs `body` for IPv4 and for IPv6 in a process of its own, on a host of its own; skips where it
// may have none.
inline void on_own_host(const std::function<void(const OwnHost&)>& body) {
  constexpr int kNotPermitted = 77;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
      ::_exit(kNotPermitted);
    }
    if (!add_addresses()) ::_exit(kNotPermitted);
    body({address_of("127.0.0.1"), address_of("10.77.0.1"), address_of("0.0.0.0")});
    if (add_ipv6_address()) body({address_of("::1"), address_of("fd77::1"), address_of("::")});
    ::fflush(nullptr);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotPermitted) {
    GTEST_SKIP() << "no network namespaces may be made here";
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "see what the child said";
}

}  // namespace weft::udp::testing
