// SPDX-License-Identifier: BSD-2-Clause
// Which memory of this process may be read, or written to?
#pragma once

#include <cstdint>
#include <vector>

namespace weft::os {

// Virtual addresses from `begin` up to, not including, `end`.
struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool operator==(const AddressRange&) const = default;
};

// Those of the given range that are mapped with these protections, in the order of their addresses;
// neighbours are one range. None where /proc does not tell.
std::vector<AddressRange> mapped_ranges(const AddressRange& within, bool readable, bool writable);

}  // namespace weft::os
