// SPDX-License-Identifier: BSD-2-Clause
// How is a socket made whose packets are known to the last header field before they leave?
#include "os/udp_socket.h"

#include <netinet/udp.h>
#include <sys/socket.h>

#include <climits>

#include "socket_option.h"

namespace weft::os {
namespace {

// What the contract rests on. UDP_NO_CHECK6_RX is as old as Linux 3.16, the others are older.
bool set_indispensable(int fd, bool v6) {
  if (!v6) {
    return set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO) &&
           set_option(fd, IPPROTO_IP, IP_RECVTOS, 1) && set_option(fd, IPPROTO_IP, IP_RECVERR, 1);
  }
  return set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO) &&
         set_option(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1) &&
         set_option(fd, IPPROTO_IPV6, IPV6_RECVERR, 1) &&
         set_option(fd, SOL_UDP, UDP_NO_CHECK6_RX, 1);
}

// Every datagram brings the address that it was sent to. Where one is bound, that is known.
bool ask_for_destination(int fd, bool v6) {
  return v6 ? set_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
            : set_option(fd, IPPROTO_IP, IP_PKTINFO, 1);
}

bool set_header_fields(int fd, bool v6, const UdpSocket::SocketOptions& options) {
  const int level = v6 ? IPPROTO_IPV6 : IPPROTO_IP;
  const bool marked = options.traffic_class == 0 ||
                      set_option(fd, level, v6 ? IPV6_TCLASS : IP_TOS, options.traffic_class);
  return marked && (options.hop_limit == 0 ||
                    set_option(fd, level, v6 ? IPV6_UNICAST_HOPS : IP_TTL, options.hop_limit));
}

// Asks for the most; the kernel gives what net.core.rmem_max and wmem_max allow.
std::size_t enlarge_buffers(int fd) {
  set_option(fd, SOL_SOCKET, SO_SNDBUF, INT_MAX / 2);
  set_option(fd, SOL_SOCKET, SO_RCVBUF, INT_MAX / 2);
  int given = 0;
  socklen_t length = sizeof given;
  ::getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &given, &length);
  return static_cast<std::size_t>(given);
}

}  // namespace

Status UdpSocket::set_options(const SocketAddress& address, const SocketOptions& options) {
  const bool v6 = address.family() == AF_INET6;
  const int fd = this->fd();
  if (!set_indispensable(fd, v6) || !set_header_fields(fd, v6, options) ||
      (address.is_any() && !ask_for_destination(fd, v6))) {
    return last_error("a UDP socket at " + address.text() + " takes no options");
  }
  // Setting no segment size changes nothing, but only a kernel that has trains lets one do it.
  trains_ = options.trains && set_option(fd, SOL_UDP, UDP_SEGMENT, 0);
  if (options.merging) set_option(fd, SOL_UDP, UDP_GRO, 1);
  receive_buffer_ = enlarge_buffers(fd);
  return {};
}

Result<UdpSocket> UdpSocket::over(const UdpPort& port, const SocketOptions& options) {
  UdpSocket made;
  made.socket_ = port.open();
  if (made.socket_ == nullptr)
    return last_error("cannot open the socket of " + port.address().text());
  made.address_ = port.address();
  if (Status ok = made.set_options(made.address_, options); !ok) return ok.error();
  return made;
}

Status UdpSocket::open(int family) {
  socket_ =
      std::make_shared<const Fd>(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_->valid()) return last_error("cannot open a UDP socket");
  if (family == AF_INET6) set_option(fd(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  return {};
}

Status UdpSocket::bind_to(const SocketAddress& wanted) {
  if (::bind(fd(), wanted.get(), wanted.length()) != 0) {
    return last_error("cannot bind " + wanted.text());
  }
  Result<SocketAddress> address = bound_to(*socket_);
  if (!address) return address.error();
  address_ = address.value();
  return {};
}

Result<UdpSocket> UdpSocket::bind(const SocketAddress& wanted, const SocketOptions& options) {
  UdpSocket made;
  if (Status ok = made.open(wanted.family()); !ok) return ok.error();
  if (Status ok = made.set_options(wanted, options); !ok) return ok.error();
  if (Status ok = made.bind_to(wanted); !ok) return ok.error();
  return made;
}

}  // namespace weft::os
