// SPDX-License-Identifier: BSD-2-Clause
// How does a thread that a threading model does not know of get into what is used without locks?
//
// With FI_THREAD_DOMAIN the program lets one thread at a time move data in a domain: the owner. All
// others are foreign: the background thread, a thread that waits for an event queue, and every one
// that makes a control call (fi_domain(3): those are thread safe under every model).
//
// The lock is biased towards the owner: it says by a plain store that it is inside, and looks
// whether the bias has been revoked: no instruction that waits for other cores. A foreign thread
// revokes the bias, has the processors of the other threads run a barrier (os/barrier.h), after
// which either it sees the owner inside or the owner sees the revocation, and waits until the owner
// has left. Without the bias all threads come in through a mutex, so that a program that makes many
// control calls pays for one barrier. The owner restores the bias by its 16th entry in a row.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "os/spin.h"

namespace weft {

// One for all objects of a domain, where os::can_raise_process_barriers().
class BiasedLock {
 public:
  BiasedLock() = default;
  BiasedLock(const BiasedLock&) = delete;
  BiasedLock& operator=(const BiasedLock&) = delete;

  // Owners: waits while a foreign thread is inside. Calls nest, the last first; each passes what
  // enter() returned to its leave().
  unsigned enter() {
    if (!revoked_.load(std::memory_order_acquire)) [[likely]] {
      const unsigned depth = inside_.load(std::memory_order_relaxed);
      inside_.store(depth + 1, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (depth != 0 || !revoked_.load(std::memory_order_acquire)) [[likely]]
        return depth;
      inside_.store(0, std::memory_order_release);
    }
    return enter_unbiased();
  }
  void leave(unsigned depth) {
    if (depth != kForeign) [[likely]]
      inside_.store(depth, std::memory_order_release);
  }

  // Any thread that is not inside as an owner: waits until no other thread is, and keeps them out.
  // Calls nest.
  void enter_foreign();
  void leave_foreign();

 private:
  bool is_foreign() const {
    return foreign_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  unsigned enter_unbiased();

  // For the calls of an owner that a foreign thread makes while it is inside. It must not touch the
  // count, not even while no owner is inside: one may be about to come in that has not seen the
  // revocation yet.
  static constexpr unsigned kForeign = ~0u;
  // Entries of owners without one of a foreign thread between them, after which the bias returns.
  static constexpr unsigned kQuietEntries = 16;

  std::atomic<unsigned> inside_{0};  // calls of owners that have not left
  std::atomic<bool> revoked_{false};
  std::atomic<std::thread::id> foreign_{};  // the thread that wants to come in
  // Held while a foreign thread wants to come in or is inside, and by owners that come in unbiased.
  std::mutex mutex_;
  unsigned quiet_entries_ = 0;  // of owners, since the last foreign thread was inside
  unsigned nested_ = 0;         // calls of the foreign thread beyond the first
};

}  // namespace weft
