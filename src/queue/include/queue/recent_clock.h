// SPDX-License-Identifier: BSD-2-Clause
// How late is it, without a look at the clock each time?
#pragma once

#include <atomic>
#include <cstdint>

#include "base/time.h"
#include "os/cycles.h"

namespace weft::queue {

// The time of the last look at the clock, for about 0.4 us: a look takes as long as all the rest of
// a poll that finds nothing. Any thread.
class RecentClock {
 public:
  Time now() {
    const std::uint64_t cycles = os::cycles();
    if (cycles - read_at_.load(std::memory_order_acquire) < kFreshCycles) {
      return time_.load(std::memory_order_relaxed);
    }
    const Time time = Time::clock::now();
    // In this order: no thread sees the count without the time.
    time_.store(time, std::memory_order_relaxed);
    read_at_.store(cycles, std::memory_order_release);
    return time;
  }

 private:
  static constexpr std::uint64_t kFreshCycles = 1000;

  std::atomic<std::uint64_t> read_at_{0};
  std::atomic<Time> time_{Time{}};
};

}  // namespace weft::queue
