// SPDX-License-Identifier: BSD-2-Clause
// Which memory of a process do other processes have, too?
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "os/file_identity.h"

namespace weft::os {

// A mapping that writes through to its object: a file, a memfd, a System V segment, or memory
// shared with forked children.
struct SharedMapping {
  std::uint64_t begin = 0;  // virtual addresses in the process
  std::uint64_t end = 0;
  FileIdentity object;
  std::uint64_t offset = 0;  // of `begin` in the object, in bytes
};

// The shared mappings (MAP_SHARED) of `process` that overlap `length` bytes, at least one, at
// `address`, in the order of their addresses. None where /proc does not tell.
std::vector<SharedMapping> shared_mappings(pid_t process, std::uint64_t address,
                                           std::uint64_t length);

}  // namespace weft::os
