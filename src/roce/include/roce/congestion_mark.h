// SPDX-License-Identifier: BSD-2-Clause
// Did a datagram meet a queue on its way? (RFC 3168: "congestion experienced" is both ECN bits)
#pragma once

#include <cstdint>

#include "os/udp_socket.h"

namespace weft::roce {

inline bool met_congestion(const os::Datagram& datagram) {
  constexpr std::uint8_t kEcnBits = 3;  // of the traffic class
  return (datagram.traffic_class & kEcnBits) == kEcnBits;
}

}  // namespace weft::roce
