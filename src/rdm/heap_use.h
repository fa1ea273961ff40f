// SPDX-License-Identifier: BSD-2-Clause
// How many bytes of the heap are in use?
#pragma once

#include <malloc.h>

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
// sanitizer/allocator_interface.h, which not every installation of gcc has.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();
#endif

namespace weft::rdm::testing {

// A sanitizer's own allocations distort small numbers.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kOwnAllocator = false;
#else
inline constexpr bool kOwnAllocator = true;
#endif

inline std::size_t heap_use() {
#if defined(__SANITIZE_ADDRESS__)
  return __sanitizer_get_current_allocated_bytes();
#else
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
#endif
}

}  // namespace weft::rdm::testing
