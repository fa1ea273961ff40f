// SPDX-License-Identifier: BSD-2-Clause
// Between which two sockets do packets of a flow go?
#pragma once

#include <cstdint>

#include "os/socket_address.h"
#include "os/udp_path.h"
#include "wire/icrc.h"

namespace weft::roce {

// Both addresses with their ports, as they stand in the packets' IP and UDP headers.
wire::Route route_between(const os::SocketAddress& from, const os::SocketAddress& to);

// The way from an endpoint at `own`, which may be a wildcard, to a peer; its source has the port of
// `own`. Errors: EHOSTUNREACH for a peer of the other family, others of os::udp_path_to().
Result<os::UdpPath> path_from(const os::SocketAddress& own, const os::SocketAddress& peer);

// The key of every queue pair for datagrams: the one that librdmacm gives to those of its port
// space (RDMA_UDP_QKEY). It separates services, and is no secret.
inline constexpr std::uint32_t kDatagramQueueKey = 0x0123'4567;

// Endpoints that may share a port, and the manager of connections, have numbers of their own: the
// queue pair of the endpoint at a port.
constexpr std::uint32_t queue_pair_at(std::uint16_t port) { return std::uint32_t{port} << 8 | 1; }
// The port of the endpoint that has a queue pair.
constexpr std::uint16_t port_of(std::uint32_t queue_pair) {
  return static_cast<std::uint16_t>(queue_pair >> 8);
}
// Whether a queue pair is a foreign peer's (rdma_rxe, an RNIC), which is at port 4791: Weft's have
// ports from 32768 on.
constexpr bool is_foreign(std::uint32_t queue_pair) { return queue_pair < 0x80'0000; }

// The path MTU of a flow: the largest multiple of 64 whose packets, with every header that they may
// have, fit into IP packets of that family and of so many bytes (as the interface counts them); not
// below kLeastPathMtu, nor above wire::kMaxReliableDatagramMtu.
std::size_t path_mtu_within(std::size_t packet, int family);

}  // namespace weft::roce
