// SPDX-License-Identifier: BSD-2-Clause
// How does a loop that waits for another core leave it the road?
#pragma once

namespace weft {

// A short rest between two looks at memory that another core will write.
inline void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace weft
