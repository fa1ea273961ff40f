// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint get an address of its own?
#pragma once

#include <memory>

#include "base/result.h"
#include "os/fd.h"
#include "os/socket_address.h"

namespace weft::os {

// Holds a UDP port of this network namespace. Until a UdpSocket takes it over, this host answers
// datagrams with an ICMP error (port unreachable); not so for the unspecified address and for
// link-local ones.
class UdpPort {
 public:
  // Binds `wanted` (port 0: any free one). Errors: EADDRINUSE, EADDRNOTAVAIL, others of bind(2).
  static Result<UdpPort> bind(const SocketAddress& wanted);
  // What was bound, with the port that was chosen.
  const SocketAddress& address() const { return address_; }
  // The socket itself, shared with this port; it takes datagrams of all senders from now on. Null
  // when descriptors are short (errno).
  std::shared_ptr<const Fd> open() const;

 private:
  bool take_turns() const;

  std::shared_ptr<const Fd> socket_;
  SocketAddress address_;
};

// How many ports one local address has for sockets that let the kernel choose
// (net.ipv4.ip_local_port_range), without those below 32768, which name no endpoint.
std::size_t free_ports();

// The address that a socket is bound to. Errors: EINVAL when it is none of IPv4 or IPv6.
Result<SocketAddress> bound_to(const Fd& socket);

// Whether a socket of this network namespace takes in what anybody sends to that address. Never
// false while one does; where the kernel cannot be asked about one address, true for want of an
// answer while sockets come and go too fast.
bool has_listener(const SocketAddress& address);

}  // namespace weft::os
