// SPDX-License-Identifier: BSD-2-Clause
// What do the IP and UDP headers of a packet look like?
#pragma once

#include <cstddef>
#include <span>

#include "wire/icrc.h"

namespace weft::wire {

inline constexpr std::size_t kIpv4Bytes = 20;
inline constexpr std::size_t kIpv6Bytes = 40;
inline constexpr std::size_t kUdpBytes = 8;

// Bytes of the IP header of a route.
inline std::size_t ip_bytes_of(const Route& route) { return route.v6 ? kIpv6Bytes : kIpv4Bytes; }

// Writes both headers of a datagram of that length, without checksums, and with the hop limit, the
// traffic class and the flow label of a packet that has just left. `out` has ip_bytes_of() +
// kUdpBytes.
void write_ip_and_udp(const Route& route, Ipv4Words words, std::size_t datagram, std::byte* out);

// Enters the checksum into an IPv4 header that is complete but for it.
void add_ipv4_checksum(std::byte* ip);

// Enters the checksum into a UDP header that is complete but for it, of that datagram (RFC 768).
void add_udp_checksum(const Route& route, std::byte* udp, std::span<const std::byte> datagram);

}  // namespace weft::wire
