// SPDX-License-Identifier: BSD-2-Clause
// Which packets that came to a port were dropped, and why?
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

namespace weft::roce {

// Packets that were dropped, by reason.
struct PacketDrops {
  std::uint64_t malformed = 0;
  std::uint64_t wrong_crc = 0;
  std::uint64_t wrong_pkey = 0;
  std::uint64_t wrong_queue_pair = 0;
  std::uint64_t wrong_queue_key = 0;
  std::uint64_t unknown_flow = 0;
  std::uint64_t wrong_peer = 0;  // of a flow with another peer
  // Forwarded from port 4791: not by its owner, or not from a foreign peer.
  std::uint64_t forged = 0;
  std::uint64_t not_foreign = 0;
};

std::uint64_t sum(const PacketDrops& drops);

// So many packets were dropped, or came to nothing, for that reason.
struct CountedReason {
  std::uint64_t count;
  const char* reason;
};

// For people: "3 malformed, 1 repeated". Empty when all counts are 0.
std::string text_of(std::initializer_list<CountedReason> reasons);
std::string text_of(const PacketDrops& drops);

}  // namespace weft::roce
