// SPDX-License-Identifier: BSD-2-Clause
// How do tests get a host of their own, on which port 4791 is free?
#include "own_network.h"

#include <gtest/gtest.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "os/fd.h"
#include "os/loopback_support.h"
#include "os/own_process_support.h"

namespace weft::roce::testing {

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
  const os::SocketAddress address = os::address_of("10.77.0.1");
  std::memcpy(&more.ifr_addr, address.get(), address.length());
  return ::ioctl(v4.get(), SIOCSIFADDR, &more) == 0;
}

// The same for IPv6, which not every host has.
bool add_ipv6_address() {
  const os::Fd v6(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  in6_ifreq request{};
  const os::SocketAddress address = os::address_of("fd77::1");
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
  os::in_own_process("a network namespace", [&] {
    if (!os::enter_empty_network() || !add_addresses()) return false;
    body({os::address_of("127.0.0.1"), os::address_of("10.77.0.1"), os::address_of("0.0.0.0")});
    if (add_ipv6_address()) {
      body({os::address_of("::1"), os::address_of("fd77::1"), os::address_of("::")});
    }
    return true;
  });
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

}  // namespace weft::roce::testing
