// SPDX-License-Identifier: BSD-2-Clause
// How does a process hear what is sent to a multicast group, and by which interface does it send
// there?
#include <sys/socket.h>

#include "os/udp_socket.h"

#include "os/cancellation.h"
#include "socket_option.h"

namespace weft::os {
namespace {

bool join_v4(int fd, const SocketAddress& group, unsigned interface) {
  ip_mreqn wanted{};
  wanted.imr_multiaddr = reinterpret_cast<const sockaddr_in*>(group.get())->sin_addr;
  wanted.imr_ifindex = static_cast<int>(interface);
  return ::setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &wanted, sizeof wanted) == 0;
}

bool join_v6(int fd, const SocketAddress& group, unsigned interface) {
  ipv6_mreq wanted{};
  wanted.ipv6mr_multiaddr = reinterpret_cast<const sockaddr_in6*>(group.get())->sin6_addr;
  wanted.ipv6mr_interface = interface;
  return ::setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &wanted, sizeof wanted) == 0;
}

bool send_by(int fd, int family, unsigned interface, bool loops) {
  if (family == AF_INET6) {
    return set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, static_cast<int>(interface)) &&
           set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, loops ? 1 : 0);
  }
  ip_mreqn by{};
  by.imr_ifindex = static_cast<int>(interface);
  return ::setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &by, sizeof by) == 0 &&
         set_option(fd, IPPROTO_IP, IP_MULTICAST_LOOP, loops ? 1 : 0);
}

// A group of link-local scope means nothing without the interface.
SocketAddress scoped(const SocketAddress& group, unsigned interface) {
  if (group.family() != AF_INET6) return group;
  sockaddr_in6 raw = *reinterpret_cast<const sockaddr_in6*>(group.get());
  if (IN6_IS_ADDR_MC_LINKLOCAL(&raw.sin6_addr)) raw.sin6_scope_id = interface;
  return SocketAddress::parse(&raw, sizeof raw).value();
}

}  // namespace

// Else Linux gives a socket what anybody on this host has joined, on whatever interface.
Status UdpSocket::receive_only(const SocketAddress& group, unsigned interface) {
  const int fd = this->fd();
  const bool v6 = group.family() == AF_INET6;
  const bool only = v6 ? set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0)
                       : set_option(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
  if (only && (v6 ? join_v6(fd, group, interface) : join_v4(fd, group, interface))) return {};
  return last_error("cannot join " + group.text());
}

Result<UdpSocket> UdpSocket::join(const SocketAddress& group, unsigned interface,
                                  const SocketOptions& options) {
  if (!group.is_multicast() || group.port() == 0) {
    return Error{EINVAL, group.text() + " is no multicast group with a port"};
  }
  UdpSocket made;
  if (Status ok = made.open(group.family()); !ok) return ok.error();
  // Members of all users share a group's port, and each gets every datagram: that takes nothing
  // away from the others, which SO_REUSEPORT would keep out.
  set_option(made.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (Status ok = made.set_options(group, options); !ok) return ok.error();
  if (Status ok = made.bind_to(scoped(group, interface)); !ok) return ok.error();
  if (Status ok = made.receive_only(group, interface); !ok) return ok.error();
  return made;
}

Status UdpSocket::send_to_group_by(const SocketAddress& group, unsigned interface, bool loops) {
  const CancellationOff off;
  const Fd probe(::socket(group.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const bool leads = probe.valid() && send_by(probe.get(), group.family(), interface, loops) &&
                     ::connect(probe.get(), group.get(), group.length()) == 0;
  if (leads && send_by(fd(), group.family(), interface, loops)) return {};
  return last_error("cannot send to " + group.text());
}

}  // namespace weft::os
