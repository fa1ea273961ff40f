// SPDX-License-Identifier: BSD-2-Clause
// Between which sockets, and over which route, do packets go?
#pragma once

#include "os/udp_socket.h"
#include "wire/icrc.h"

namespace weft::roce {

// How a socket for packets sends: routers may mark its packets instead of dropping them (ECT(0)).
inline constexpr os::UdpSocket::SocketOptions kSocketOptions{.traffic_class = 2};

// Between which sockets, and over which route, packets go.
struct Path {
  os::SocketAddress from;
  os::SocketAddress to;
  wire::Route route;
};

}  // namespace weft::roce
