// SPDX-License-Identifier: BSD-2-Clause
// Which errors of a peer reach the program?
#pragma once

#include <cerrno>
#include <cstdint>

namespace weft::link {

// A peer states its error as a number, in a packet or in shared memory. Completions carry only
// those numbers that a link itself uses (flow.h, inbox.h); any other number becomes `otherwise`.
inline int known_error(std::uint64_t stated, int otherwise) {
  switch (stated) {
    case 0:
    case EACCES:
    case EFAULT:
    case EIO:
    case ENOMEM:
    case ETIMEDOUT:
    case ECONNRESET:
      return static_cast<int>(stated);
    default:
      return otherwise;
  }
}

}  // namespace weft::link
