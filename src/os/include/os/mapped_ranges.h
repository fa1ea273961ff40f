// SPDX-License-Identifier: BSD-2-Clause
// Which memory of this process may be read, or written to?
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace weft::os {

// Virtual addresses from `begin` up to, not including, `end`.
struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool operator==(const AddressRange&) const = default;
};

// Those of the given range that are mapped with these protections, in the order of their addresses;
// neighbours are one range. Errors: those of open(2) for a file in /proc.
Result<std::vector<AddressRange>> mapped_ranges(const AddressRange& within, bool readable,
                                                bool writable);
// The same for kernels before Linux 6.11: it reads of all mappings of the process.
Result<std::vector<AddressRange>> mapped_ranges_by_text(const AddressRange& within, bool readable,
                                                        bool writable);

}  // namespace weft::os
