// SPDX-License-Identifier: BSD-2-Clause
// Which way would datagrams to a peer take: from which local address, and how large may they be?
#pragma once

#include <cstddef>

#include "base/result.h"
#include "os/udp_port.h"

namespace weft::os {

// The way that the kernel's routing table names at this moment.
struct UdpPath {
  SocketAddress source;  // the local address, port 0
  // Bytes that a packet may have, IP header included: the interface's MTU, or less where a router
  // has said so (ip(7), IP_MTU). At most 65,535 with IPv4.
  std::size_t mtu = 0;
};

// Sends nothing; three or four system calls with a socket of its own. With `source` (its port is
// ignored) the way that datagrams from that local address take; empty or unspecified: from any.
// Errors: ENETUNREACH and others of connect(2); EADDRNOTAVAIL when `source` is not of this host.
// Any thread.
Result<UdpPath> udp_path_to(const SocketAddress& peer, const SocketAddress& source = {});

// Bytes of IP and UDP header in front of a datagram's payload, for AF_INET or AF_INET6.
constexpr std::size_t udp_header_bytes(int family) { return family == AF_INET6 ? 48 : 28; }

}  // namespace weft::os
