// SPDX-License-Identifier: BSD-2-Clause
// How do tests get a host for themselves, where port 4791 is theirs and nobody else's?
#include "own_network.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "os/fd.h"

namespace weft::udp::testing {

os::SocketAddress address_of(const std::string& host) {
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

namespace {

// Gives the loopback interface of this network namespace addresses; false where that fails.
bool add_addresses() {
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
bool add_ipv6_address() {
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

}  // namespace

void on_own_host(const std::function<void(const OwnHost&)>& body) {
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

OtherProcess::OtherProcess(const std::function<void(const std::function<void()>& ready)>& body) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t parent = ::getpid();
  number_ = ::fork();
  if (number_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    body([&] { EXPECT_EQ(::write(ends[1], "x", 1), 1); });
    ::_exit(1);
  }
  ::close(ends[1]);
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 1) << "the other process ended";
  ::close(ends[0]);
}

OtherProcess::~OtherProcess() {
  if (number_ <= 0) return;
  ::kill(number_, SIGKILL);
  int status = 0;
  ::waitpid(number_, &status, 0);
}

}  // namespace weft::udp::testing
