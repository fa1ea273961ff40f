// SPDX-License-Identifier: BSD-2-Clause
// How many bytes does one packet carry?
#pragma once

#include <cstddef>

namespace weft {

// The smallest path MTU that RoCE knows.
inline constexpr std::size_t kLeastPathMtu = 256;

// The path MTU of RoCE over an interface whose own MTU is `interface_mtu`: the largest of 256, 512,
// 1024, 2048 and 4096 bytes of payload that fit beside all headers, or 0 when not even the smallest
// does.
constexpr std::size_t path_mtu(std::size_t interface_mtu) {
  // IPv6 40, UDP 8, base transport header 12, the longest extended header 28, invariant CRC 4.
  constexpr std::size_t kHeaders = 92;
  for (std::size_t payload = 4096; payload >= kLeastPathMtu; payload /= 2) {
    if (interface_mtu >= payload + kHeaders) return payload;
  }
  return 0;
}

}  // namespace weft
