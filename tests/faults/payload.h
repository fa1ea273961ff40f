// SPDX-License-Identifier: BSD-2-Clause
// How does a receiver know that a message is whole, and whose and which one it was?
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::faults {

using Bytes = std::span<std::uint8_t>;
using ConstBytes = std::span<const std::uint8_t>;

// What stands in front of every message.
struct PayloadHeader {
  std::uint64_t sender;    // the session that it belongs to; unique in a run
  std::uint64_t sequence;  // counted by the sender
  std::uint64_t bytes;     // the whole message with this header
};
inline constexpr std::size_t kSmallestPayload = sizeof(PayloadHeader);

// Fills `memory` (at least kSmallestPayload bytes) with a message.
void write_payload(Bytes memory, std::uint64_t sender, std::uint64_t sequence);

// True if `memory` is, byte for byte, a whole message; `header` is then its header.
bool read_payload(ConstBytes memory, PayloadHeader& header);

// Bytes that depend on `stream` and place only, without header.
void fill_pattern(Bytes memory, std::uint64_t stream);
bool is_pattern(ConstBytes memory, std::uint64_t stream, std::size_t offset = 0);

}  // namespace weft::faults
