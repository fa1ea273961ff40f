// SPDX-License-Identifier: BSD-2-Clause
// What is known of an access that was refused?
#pragma once

#include <cstdint>
#include <span>

#include "base/types.h"

namespace weft {

// Which access, and which region it missed. Texts: memory/explanation.h.
struct RefusedAccess {
  int reason = 0;  // a memory::AccessError, of a local buffer with memory::kLocalRefusal; 0: none
  // How many ranges the operation has: none of a message; if several, which of them was refused is
  // not known, and `range` is the first.
  std::uint32_t ranges = 1;
  RemoteRange range = {};  // or the local buffer, with its descriptor as the key
  bool region_known = false;
  std::uint64_t region_start = 0;  // the remote address of its first byte
  std::uint64_t region_length = 0;
};

// As far as the request says.
inline RefusedAccess refused_of(int reason, std::span<const RemoteRange> remote) {
  const auto ranges = static_cast<std::uint32_t>(remote.size());
  return {.reason = reason, .ranges = ranges, .range = ranges != 0 ? remote[0] : RemoteRange{}};
}

}  // namespace weft
