// SPDX-License-Identifier: BSD-2-Clause
// Which bytes of a region are closed until they are refreshed? fi_mr(3), FI_MR_MMU_NOTIFY
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "os/mapped_ranges.h"

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

// True when each of these bytes lies in a part.
bool contain(const RegionParts& parts, const LocalRange& range);

// The parts after a look at some bytes, which are open from now on where they are in `mapped` (in
// the order of the addresses), else closed. Others stay as they are. Parts that follow each other
// in memory and are alike become one, whatever segment they are from.
RegionParts looked_at(const RegionParts& parts, std::span<const LocalRange> ranges,
                      std::span<const os::AddressRange> mapped);

}  // namespace weft::memory
