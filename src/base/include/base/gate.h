// SPDX-License-Identifier: BSD-2-Clause
// How does a stranger get into what one thread at a time uses without locks?
//
// The owners, whom the program keeps apart, say by a plain store that they are inside, and look
// whether a stranger wants to come in: no instruction that waits for other cores. The stranger says
// that he wants to, has the processors of the other threads run a barrier (os::process_barrier()),
// after which either he sees them inside or they see him, and waits until nobody is inside.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "base/spin.h"

namespace weft {

// One for all objects of a domain. A stranger calls close(), raises the barrier, calls
// await_empty() and in the end open(). Between the last two he is the only owner; other strangers
// wait in close(). Whoever is inside must not call it.
class Gate {
 public:
  // Owners: waits while a stranger is inside. Calls nest.
  void enter() {
    if (!wanted_.load(std::memory_order_acquire)) [[likely]] {
      const unsigned depth = inside_.load(std::memory_order_relaxed);
      inside_.store(depth + 1, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (depth != 0 || !wanted_.load(std::memory_order_acquire)) [[likely]]
        return;
      inside_.store(0, std::memory_order_release);
    }
    enter_beside_stranger();
  }
  void leave() {
    if (wanted_.load(std::memory_order_relaxed) && is_stranger()) [[unlikely]]
      return;
    inside_.store(inside_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }

  // Strangers.
  void close() {
    strangers_.lock();
    stranger_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    wanted_.store(true, std::memory_order_release);
  }
  void await_empty() {
    spin_until([this] { return inside_.load(std::memory_order_acquire) == 0; });
  }
  void open() {
    stranger_.store({}, std::memory_order_relaxed);
    wanted_.store(false, std::memory_order_release);
    strangers_.unlock();
  }

 private:
  bool is_stranger() const {
    return stranger_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  // Owners that are inside already go on: for them the stranger waits.
  [[gnu::noinline]] void enter_beside_stranger() {
    if (is_stranger()) return;
    const unsigned depth = inside_.load(std::memory_order_relaxed);
    if (depth != 0) return inside_.store(depth + 1, std::memory_order_relaxed);
    spin_until([this] { return !wanted_.load(std::memory_order_acquire); });
    enter();
  }

  std::atomic<unsigned> inside_{0};  // calls of owners that have not left
  std::atomic<bool> wanted_{false};
  std::atomic<std::thread::id> stranger_{};  // who wants to come in
  std::mutex strangers_;
};

}  // namespace weft
