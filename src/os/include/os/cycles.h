// SPDX-License-Identifier: BSD-2-Clause
// Has time passed since the last look, as cheaply as possible?
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::os {

// A count that grows by about 1 to 4 a nanosecond on x86-64, and that differs by more than a second
// between any two looks elsewhere.
inline std::uint64_t cycles() {
#ifdef __x86_64__
  return __builtin_ia32_rdtsc();
#else
  static std::atomic<std::uint64_t> looks{0};
  return looks.fetch_add(std::uint64_t{1} << 40, std::memory_order_relaxed);
#endif
}

}  // namespace weft::os
