// SPDX-License-Identifier: BSD-2-Clause
// How does a message become a packet of an unreliable datagram?
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/psn.h"
#include "base/types.h"
#include "roce/route.h"

namespace weft::roce {

// What a datagram says beside its bytes.
struct DatagramHeader {
  std::uint32_t source = 0;  // the QPNs
  std::uint32_t destination = 0;
  bool has_data = false;
  std::uint64_t data = 0;  // the lower half becomes immediate data
  std::uint32_t queue_key = kDatagramQueueKey;
};

// The packets of one sending queue pair, numbered. One thread at a time.
class DatagramWriter {
 public:
  explicit DatagramWriter(Psn first = {}) : psn_(first) {}

  // Writes a UD SEND of the `length` bytes in `sges` (at most wire::kMaxPathMtu) to `out`, which
  // has room for the largest packet. Returns its bytes, without an ICRC; nothing when an SGE is
  // not mapped: then its PSN was not used.
  std::optional<std::size_t> write(const DatagramHeader& header, std::span<const LocalRange> sges,
                                   std::size_t length, std::span<std::byte> out);

 private:
  Psn psn_;
};

}  // namespace weft::roce
