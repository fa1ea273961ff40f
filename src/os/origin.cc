// SPDX-License-Identifier: BSD-2-Clause
// Was an object made by this process, or inherited over a fork?
#include "os/origin.h"

#include <pthread.h>

namespace weft::os {

std::atomic<std::uint32_t> Origin::forks{0};

Origin::Origin() {
  [[maybe_unused]] static const int registered =
      ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  forks_ = forks.load(std::memory_order_relaxed);
}

}  // namespace weft::os
