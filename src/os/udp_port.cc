// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint get an address of its own?
#include "os/udp_port.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "os/cancellation.h"

namespace weft::os {

namespace {

constexpr std::uint16_t kDiscard = 9;  // RFC 863

// With SO_REUSEPORT the sockets of a port must belong to one user. SO_REUSEADDR, which does not ask
// for that with UDP, would let any user bind the port while this lasts.
void set_sharing(const Fd& fd, int shares) {
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &shares, sizeof shares);
}

Result<Fd> bind_socket(const SocketAddress& wanted, bool shares) {
  Fd fd(::socket(wanted.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return last_error("cannot open a UDP socket");
  const int yes = 1;
  if (wanted.family() == AF_INET6) {
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
  }
  if (shares) set_sharing(fd, 1);
  if (::bind(fd.get(), wanted.get(), wanted.length()) != 0) {
    return last_error("cannot bind " + wanted.text());
  }
  return fd;
}

}  // namespace

std::size_t free_ports() {
  constexpr unsigned kFirst = 32768;
  unsigned first = kFirst;  // the kernel's range unless it says another one
  unsigned last = 60999;
  char text[64]{};
  const CancellationOff off;
  const Fd range(::open("/proc/sys/net/ipv4/ip_local_port_range", O_RDONLY | O_CLOEXEC));
  if (range.valid() && ::read(range.get(), text, sizeof text - 1) > 0) {
    static_cast<void>(std::sscanf(text, "%u %u", &first, &last));
  }
  first = std::max(first, kFirst);
  return last < first ? 0 : last - first + 1;
}

Result<SocketAddress> bound_to(const Fd& socket) {
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &length);
  return SocketAddress::parse(&bound, length);
}

// After a disconnect the socket would still receive from this host only: kernels keep the address
// of an IPv6 peer. So another socket takes its place; both share the port for a moment. A forked
// child's copy of the old socket must not receive the datagrams that the new one sends to itself.
bool UdpPort::take_turns() const {
  const CancellationOff off;
  set_sharing(*socket_, 1);
  const auto fresh = bind_socket(address_, true);
  if (!fresh) {
    set_sharing(*socket_, 0);
    errno = fresh.error().code;
    return false;
  }
  set_sharing(fresh.value(), 0);
  SocketAddress discard = address_;
  discard.set_port(kDiscard);
  static_cast<void>(::connect(socket_->get(), discard.get(), discard.length()));
  return ::dup3(fresh.value().get(), socket_->get(), O_CLOEXEC) >= 0;
}

std::shared_ptr<const Fd> UdpPort::open() const {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  const bool connected =
      ::getpeername(socket_->get(), reinterpret_cast<sockaddr*>(&peer), &length) == 0;
  if (connected && !take_turns()) return nullptr;
  return socket_;
}

// A socket that is connected to itself receives from itself only; the kernel rejects other senders.
Result<UdpPort> UdpPort::bind(const SocketAddress& wanted) {
  const CancellationOff off;
  auto socket = bind_socket(wanted, false);
  if (!socket) return socket.error();
  auto address = bound_to(socket.value());
  if (!address) return address.error();
  UdpPort port;
  port.socket_ = std::make_shared<const Fd>(std::move(socket).value());
  port.address_ = address.value();
  // Nothing reads this socket yet; packets of any host must not pile up in it.
  const int least = 1;
  ::setsockopt(port.socket_->get(), SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
  if (!port.address_.is_any() && !port.address_.is_link_local()) {
    // If that fails, other senders get no ICMP error: they wait for a timeout.
    static_cast<void>(::connect(port.socket_->get(), port.address_.get(), port.address_.length()));
  }
  return port;
}

}  // namespace weft::os
