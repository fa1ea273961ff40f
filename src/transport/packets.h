// SPDX-License-Identifier: BSD-2-Clause
// How do work and packets correspond? (IBTA 9.2.1, 9.3)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.h"
#include "transport/work.h"
#include "wire/packet.h"

namespace weft::transport {

// What a packet of some work does that is its first or last one, both, or neither.
wire::Operation operation_of(const Work& work, bool first, bool last);

constexpr bool is_write(wire::Operation operation) {
  return operation >= wire::Operation::kWriteFirst &&
         operation <= wire::Operation::kWriteOnlyImmediate;
}
constexpr bool is_send(wire::Operation operation) {
  return operation <= wire::Operation::kSendOnlyImmediate ||
         operation == wire::Operation::kSendLastInvalidate ||
         operation == wire::Operation::kSendOnlyInvalidate;
}

// How many packets carry that many bytes.
std::uint32_t packets_for(std::uint64_t length, std::size_t path_mtu);

// Is the payload as long as that of such a packet must be on this path?
bool right_size(const wire::Packet& packet, std::size_t path_mtu);

// Is that as many bytes as a write of `whole` bytes has had after a packet, its last one or not?
constexpr bool right_progress(std::uint64_t had, std::uint64_t whole, bool last) {
  return last ? had == whole : had < whole;
}

// Writes a packet, whose payload are `payload` bytes of `pieces` from byte `offset` on, from its
// base header to its padding. Returns its length, or 0 when a piece may not be read; `out` has room
// for it.
std::size_t write_packet(const wire::Packet& packet, LocalMemory& memory,
                         std::span<const Segment> pieces, std::uint64_t offset, std::size_t payload,
                         std::span<std::byte> out);

}  // namespace weft::transport
