// SPDX-License-Identifier: BSD-2-Clause
// How is a file looked at by its name, before it is opened?
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <string>

#include "os/fd.h"

namespace weft::os {

// The path of what a descriptor stands for.
inline std::string descriptor_path(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

// A descriptor that names a file and cannot hold or drop locks on it, and the file's status. Links
// are not followed, and nothing happens to a special file. Errors: those of open(2).
inline Result<Fd> open_name(const std::string& path, struct stat& info) {
  Fd name(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!name.valid() || ::fstat(name.get(), &info) != 0) return last_error(path);
  return name;
}

}  // namespace weft::os
