// SPDX-License-Identifier: BSD-2-Clause
// Which mappings does a process have, by the text of the kernel? proc(5), /proc/PID/maps
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "os/file_identity.h"

namespace weft::os {

// One mapping, of the virtual addresses from `begin` up to, not including, `end`.
struct MappingLine {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool readable = false;
  bool writable = false;
  bool shared = false;
  std::uint64_t offset = 0;  // of `begin` in the object, in bytes
  FileIdentity object;
};

// Calls `visit` for each mapping that ends behind `first` and begins at `last` or before, in the
// order of their addresses. Errors: those of open(2), and then it was not called.
Status visit_mappings(pid_t process, std::uint64_t first, std::uint64_t last,
                      const std::function<void(const MappingLine&)>& visit);

}  // namespace weft::os
