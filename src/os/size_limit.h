// SPDX-License-Identifier: BSD-2-Clause
// May a file of this process grow to that size?
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace weft::os {

// False beyond RLIMIT_FSIZE: a call that makes a file longer than that raises SIGXFSZ, which kills
// the program. Ask first.
inline bool within_size_limit(std::uint64_t size) {
  struct rlimit limit {};
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         size <= limit.rlim_cur;
}

}  // namespace weft::os
