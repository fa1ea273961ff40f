// SPDX-License-Identifier: BSD-2-Clause
// Which packets were dropped without an answer, and why?
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::transport {

// Why a receiver of an unreliable service left a packet alone.
enum class Drop : std::uint8_t {
  kTransport,    // of another transport than the queue pair's
  kPartition,    // its partition key does not match
  kSequence,     // packets before it are missing, or it does not continue what has begun
  kRest,         // of a message of which a packet was missing or dropped
  kLength,       // of a length that no such packet, message or receive has
  kNoReceive,    // none was posted
  kAccess,       // to memory that the sender may not access so
  kUnreachable,  // that memory has gone
};
inline constexpr std::size_t kDropReasons = static_cast<std::size_t>(Drop::kUnreachable) + 1;

// Packets by reason.
class Drops {
 public:
  void count(Drop reason) { ++packets_[static_cast<std::size_t>(reason)]; }
  std::uint64_t of(Drop reason) const { return packets_[static_cast<std::size_t>(reason)]; }
  std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t packets : packets_) sum += packets;
    return sum;
  }

 private:
  std::array<std::uint64_t, kDropReasons> packets_{};
};

}  // namespace weft::transport
