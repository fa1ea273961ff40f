// SPDX-License-Identifier: BSD-2-Clause
// Was an object made by this process, or inherited over a fork?
#include "os/origin.h"

#include "os/at_fork.h"

namespace weft::os {

std::atomic<std::uint32_t> Origin::forks{0};

AtFork Origin::at_fork(1, [] { forks.fetch_add(1, std::memory_order_relaxed); });

}  // namespace weft::os
