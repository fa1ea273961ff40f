// SPDX-License-Identifier: BSD-2-Clause
// How does work become a packet of an unreliable datagram? (IBTA 9.8.3)
#pragma once

#include <cstdint>
#include <span>

#include "base/psn.h"
#include "work/work.h"

namespace weft::transport {

// The headers of a datagram beside its work.
struct UdHeader {
  std::uint32_t source = 0;  // the QPNs
  std::uint32_t destination = 0;
  std::uint32_t queue_key = 0;
  Psn psn;
};

// Writes a UD SEND of the bytes of `sges`, at most wire::kMaxPathMtu, into `out`, which has room
// for it. Returns its length, from base header to padding; 0 when an SGE may not be read.
std::size_t write_datagram(const UdHeader& header, const work::Work& work,
                           work::LocalMemory& memory, std::span<const work::Segment> sges,
                           std::span<std::byte> out);

}  // namespace weft::transport
