// SPDX-License-Identifier: BSD-2-Clause
// How does a stranger get into what one thread at a time uses without locks?
//
// The owners, whom the program keeps apart, say by a plain store that they are inside, and look
// whether a stranger wants to come in: no instruction that waits for other cores. The stranger says
// that he wants to, has the processors of the other threads run a barrier (os::process_barrier()),
// after which either he sees them inside or they see him, and waits until nobody is inside.
//
// Even that is too much where no stranger ever comes. So owners say nothing before they are asked
// to, and begin when none of them can be inside.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "base/spin.h"

namespace weft {

// One for all objects of a domain. A stranger, once admitted, calls close(), raises the barrier,
// calls await_empty() and in the end open(). Between the last two he is the only owner; other
// strangers wait in close(). Whoever is inside must not call it.
class Gate {
 public:
  // Owners: admits strangers from the next enter_first() or leave_last() on, which calls `then`.
  // Only the first call counts.
  void admit_strangers(std::function<void()> then) {
    if (state_.load(std::memory_order_relaxed) != State::kUnattended) return;
    then_ = std::move(then);
    state_.store(State::kWanted, std::memory_order_relaxed);
  }
  // Anybody: whether strangers are admitted. Once they are, they always are.
  bool admits_strangers() const {
    return state_.load(std::memory_order_acquire) == State::kAttended;
  }

  // Owners: waits while a stranger is inside. Calls nest.
  void enter() {
    if (is_attended()) come_in();
  }
  void leave() {
    if (is_attended()) go_out();
  }
  // As enter(), while no owner is inside.
  void enter_first() {
    if (state_.load(std::memory_order_relaxed) == State::kUnattended) return;
    if (!is_attended()) [[unlikely]]
      attend();
    come_in();
  }
  // As leave(), for whoever came in by enter_first(): strangers may have been asked for meanwhile.
  void leave_last() {
    if (is_attended()) return go_out();
    if (state_.load(std::memory_order_relaxed) == State::kWanted) [[unlikely]]
      attend();
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
  enum class State : std::uint8_t { kUnattended, kWanted, kAttended };

  bool is_attended() const { return state_.load(std::memory_order_relaxed) == State::kAttended; }
  // No owner is inside.
  void attend() {
    state_.store(State::kAttended, std::memory_order_release);
    then_();
  }
  void come_in() {
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
  void go_out() {
    if (wanted_.load(std::memory_order_relaxed) && is_stranger()) [[unlikely]]
      return;
    inside_.store(inside_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }
  bool is_stranger() const {
    return stranger_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  // Owners that are inside already go on: for them the stranger waits.
  [[gnu::noinline]] void enter_beside_stranger() {
    if (is_stranger()) return;
    const unsigned depth = inside_.load(std::memory_order_relaxed);
    if (depth != 0) return inside_.store(depth + 1, std::memory_order_relaxed);
    spin_until([this] { return !wanted_.load(std::memory_order_acquire); });
    come_in();
  }

  std::atomic<State> state_{State::kUnattended};
  std::atomic<unsigned> inside_{0};  // calls of owners that have not left
  std::atomic<bool> wanted_{false};
  std::atomic<std::thread::id> stranger_{};  // who wants to come in
  std::mutex strangers_;
  std::function<void()> then_;
};

}  // namespace weft
