// SPDX-License-Identifier: BSD-2-Clause
// How do work and packets correspond? (IBTA 9.2.1, 9.3)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.h"
#include "transport/settings.h"
#include "wire/packet.h"
#include "work/target.h"
#include "work/work.h"

namespace weft::transport {

// What a packet of some work does that is its first or last one, both, or neither.
wire::Operation operation_of(const work::Work& work, bool first, bool last);

constexpr bool is_write(wire::Operation operation) {
  return operation >= wire::Operation::kWriteFirst &&
         operation <= wire::Operation::kWriteOnlyImmediate;
}
constexpr bool is_send(wire::Operation operation) {
  return operation <= wire::Operation::kSendOnlyImmediate ||
         operation == wire::Operation::kSendLastInvalidate ||
         operation == wire::Operation::kSendOnlyInvalidate;
}

// The memory that a READ or WRITE request names.
constexpr work::RemoteMemory memory_of(const wire::Packet& packet) {
  return {packet.reth.address, packet.reth.key, packet.reth.length};
}

// What the last packet of a SEND or WRITE says at the end of the message.
work::MessageEnd end_of(const wire::Packet& packet);

// How many packets carry that many bytes.
std::uint32_t packets_for(std::uint64_t length, std::size_t path_mtu);

// Is the payload as long as that of such a packet must be on this path?
bool right_size(const wire::Packet& packet, std::size_t path_mtu);

// Writes a packet, whose payload are `payload` bytes of `sges` from byte `offset` on, from its
// base header to its padding. Returns its length, or 0 when an SGE may not be read; `out` has room
// for it.
std::size_t write_packet(const wire::Packet& packet, work::LocalMemory& memory,
                         std::span<const work::Segment> sges, std::uint64_t offset,
                         std::size_t payload, std::span<std::byte> out);

// The headers of a response: one that acknowledges `psn`, until its syndrome says otherwise.
wire::Packet answer_packet(const Settings& settings, wire::Operation operation, Psn psn,
                           std::uint32_t message_number);

// Writes an acknowledgement or a NAK into `out`, which has room for wire::kMaxHeaderBytes. Returns
// its length.
std::size_t write_status(const Settings& settings, Psn psn, std::uint8_t syndrome,
                         std::uint32_t message_number, std::span<std::byte> out);

}  // namespace weft::transport
