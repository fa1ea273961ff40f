// SPDX-License-Identifier: BSD-2-Clause
// Busy-wait that yields to the other thread.
#pragma once

#include <chrono>
#include <thread>

#include "os/cancellation.h"

namespace weft {

// A short rest between two looks at memory that another core will write.
inline void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns once `done()` holds: looks, gives its processor away, and in the end naps, so that
// the thread that it waits for proceeds even if the scheduler has queued that one behind it. For
// waits that usually take well under a microsecond.
template <class Done>
void spin_until(const Done& done) {
  constexpr unsigned kLooks = 100;
  constexpr unsigned kYields = 200;
  constexpr auto kNap = std::chrono::microseconds(50);
  for (unsigned turn = 0; !done(); ++turn) {
    if (turn < kLooks) {
      spin_pause();
    } else if (turn < kLooks + kYields) {
      std::this_thread::yield();
    } else {
      os::nap(kNap);
    }
  }
}

}  // namespace weft
