// SPDX-License-Identifier: BSD-2-Clause
// Must a lock be taken at all? Only when the caller's threading model lets two threads in.
#pragma once

#include <atomic>
#include <mutex>

#include "base/gate.h"
#include "base/spin.h"

namespace weft {

// Whom the locks of a domain's objects keep out (fi_domain(3), "threading"): every other thread;
// or, where the program lets one thread in at a time, nobody, or those only who come through the
// gate of the domain.
struct Locking {
  // True: every other thread. False: nobody.
  Locking(bool all_threads) : needed(all_threads) {}
  explicit Locking(Gate& strangers) : gate(&strangers) {}

  bool needed = false;
  Gate* gate = nullptr;
};

// A lock for sections of well under a microsecond that hardly ever meet. Satisfies Lockable; may be
// taken twice by one thread only where it keeps no other thread out.
//
// Nobody is woken by unlock(), which therefore is a plain store: half of what a std::mutex costs
// where nobody waits, and a message takes several of these.
class OptionalLock {
 public:
  explicit OptionalLock(const Locking& locking = true)
      : gate_(locking.gate), needed_(locking.needed) {}

  // Blocks until this thread may enter.
  void lock() {
    if (gate_ != nullptr) return gate_->enter();
    if (needed_ && held_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      wait();
  }
  // Enters when nobody is inside; always when the lock keeps no other thread out.
  bool try_lock() {
    if (gate_ != nullptr) return gate_->enter(), true;
    return !needed_ || !held_.exchange(true, std::memory_order_acquire);
  }
  // As try_lock() and unlock(), for whoever holds no other lock of the domain.
  bool try_lock_first() {
    if (gate_ != nullptr) return gate_->enter_first(), true;
    return try_lock();
  }
  void unlock_last() {
    if (gate_ != nullptr) return gate_->leave_last();
    unlock();
  }
  // Leaves.
  void unlock() {
    if (gate_ != nullptr) return gate_->leave();
    if (needed_) held_.store(false, std::memory_order_release);
  }

 private:
  [[gnu::noinline]] void wait() {
    spin_until([this] {
      const bool free = !held_.load(std::memory_order_relaxed);
      return free && !held_.exchange(true, std::memory_order_acquire);
    });
  }

  Gate* const gate_;
  std::atomic<bool> held_{false};
  const bool needed_;
};

}  // namespace weft
