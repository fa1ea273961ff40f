// SPDX-License-Identifier: BSD-2-Clause
// What stands before the payload in the receive of an unreliable datagram?
#include "wire/global_route.h"

#include "ip_headers.h"
#include "wire/endian.h"

namespace weft::wire {

static_assert(kGlobalRouteBytes == kIpv6Bytes);

std::array<std::byte, kGlobalRouteBytes> global_route(const Arrival& arrival,
                                                      std::size_t datagram) {
  std::array<std::byte, kGlobalRouteBytes> area{};
  std::byte* ip = area.data() + area.size() - ip_bytes_of(arrival.route);
  write_ip(arrival.route, arrival.words, datagram, ip);
  if (arrival.route.v6) {
    constexpr std::uint32_t kVersion = 6;
    constexpr std::uint32_t kFlowLabel = 0xF'FFFF;
    store<std::uint32_t>(ip, kVersion << 28 | std::uint32_t{arrival.traffic_class} << 20 |
                                 (arrival.flow_label & kFlowLabel));
    store<std::uint8_t>(ip + 7, arrival.hop_limit);
  } else {
    store<std::uint8_t>(ip + 1, arrival.traffic_class);
    store<std::uint8_t>(ip + 8, arrival.hop_limit);
    add_ipv4_checksum(ip);
  }
  return area;
}

}  // namespace weft::wire
