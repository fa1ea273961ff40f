// SPDX-License-Identifier: BSD-2-Clause
// Must a lock be taken at all? Only when the caller's threading model lets two threads in.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "base/spin.h"

namespace weft {

// A lock that can be switched off before its first use (fi_domain(3), "threading"), for sections of
// well under a microsecond that hardly ever meet. Satisfies Lockable. Switching while another
// thread may hold it is not allowed.
//
// Nobody is woken by unlock(), which therefore is a plain store: half of what a std::mutex costs
// where nobody waits, and a message takes several of these. Whoever waits looks, gives its
// processor away, and in the end naps, so that a holder that the scheduler has put behind it gets
// on.
class OptionalLock {
 public:
  explicit OptionalLock(bool needed = true) : needed_(needed) {}

  // Blocks until this thread may enter.
  void lock() {
    if (needed_ && held_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      wait();
  }
  // Enters when nobody is inside; always when the lock is switched off.
  bool try_lock() { return !needed_ || !held_.exchange(true, std::memory_order_acquire); }
  // Leaves.
  void unlock() {
    if (needed_) held_.store(false, std::memory_order_release);
  }

 private:
  [[gnu::noinline]] void wait() {
    constexpr unsigned kLooks = 100;
    constexpr unsigned kYields = 200;
    constexpr auto kNap = std::chrono::microseconds(50);
    for (unsigned turn = 0;; ++turn) {
      const bool free = !held_.load(std::memory_order_relaxed);
      if (free && !held_.exchange(true, std::memory_order_acquire)) return;
      if (turn < kLooks) {
        spin_pause();
      } else if (turn < kLooks + kYields) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(kNap);
      }
    }
  }

  std::atomic<bool> held_{false};
  const bool needed_;
};

}  // namespace weft
