// SPDX-License-Identifier: BSD-2-Clause
// What stands before the payload in the receive of an unreliable datagram? (IBTA annex A17,
// ibv_create_ah_from_wc(3))
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "wire/icrc.h"

namespace weft::wire {

// How a datagram came: what a socket tells of its IP header, and check_icrc() of the rest.
struct Arrival {
  Route route;
  Ipv4Words words;
  std::uint8_t traffic_class = 0;  // IPv4: type of service
  std::uint8_t hop_limit = 0;      // IPv4: time to live
  std::uint32_t flow_label = 0;    // IPv6: 20 bits
};

inline constexpr std::size_t kGlobalRouteBytes = 40;

// The area of a global route header, before a datagram (base header to ICRC) of that length. For
// IPv6 it holds the IP header; for IPv4 twenty zero bytes and then the header. Readers take it for
// the one or the other by the version in each half and by the checksum of the second one, which is
// right.
std::array<std::byte, kGlobalRouteBytes> global_route(const Arrival& arrival, std::size_t datagram);

}  // namespace weft::wire
