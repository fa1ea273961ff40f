// SPDX-License-Identifier: BSD-2-Clause
// Between which sockets, and over which route, do packets go?
#pragma once

#include "os/udp_socket.h"
#include "wire/icrc.h"

namespace weft::roce {

// How a socket of a reliable service sends. Its requesters reduce their windows when packets are
// marked, so routers may mark packets in place of dropping them: ECT(0) (RFC 3168, section 5).
inline constexpr os::UdpSocket::SocketOptions kReliableSocket{.traffic_class = 2};

// Between which sockets, and over which route, packets go.
struct Path {
  os::SocketAddress from;
  os::SocketAddress to;
  wire::Route route;
};

}  // namespace weft::roce
