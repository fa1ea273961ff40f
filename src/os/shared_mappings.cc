// SPDX-License-Identifier: BSD-2-Clause
// Which memory of a process do other processes have, too?
#include "os/shared_mappings.h"

#include "memory_map.h"

namespace weft::os {

std::vector<SharedMapping> shared_mappings(pid_t process, std::uint64_t address,
                                           std::uint64_t length) {
  std::vector<SharedMapping> found;
  const auto keep_shared = [&](const MappingLine& line) {
    if (line.shared) found.push_back({line.begin, line.end, line.object, line.offset});
  };
  static_cast<void>(visit_mappings(process, address, address + (length - 1), keep_shared));
  return found;
}

}  // namespace weft::os
