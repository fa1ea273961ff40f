// SPDX-License-Identifier: BSD-2-Clause
// Which bytes of a region are closed until they are refreshed? fi_mr(3), FI_MR_MMU_NOTIFY
#pragma once

#include <cstdint>
#include <vector>

namespace weft::memory {

// Bytes of a region that follow each other in memory, all of them open or all closed.
struct RegionPart {
  std::uint64_t base = 0;  // virtual address
  std::uint64_t length = 0;
  bool closed = false;

  bool operator==(const RegionPart&) const = default;
};

// The parts of a region in the order in which peers see them.
using RegionParts = std::vector<RegionPart>;

// True when all of these bytes lie in parts that follow each other in memory.
bool contain(const RegionParts& parts, std::uint64_t base, std::uint64_t length);

// Closes or opens those of these bytes that are in the region, in as few parts as possible.
void set_closed(RegionParts& parts, std::uint64_t base, std::uint64_t length, bool closed);

}  // namespace weft::memory
