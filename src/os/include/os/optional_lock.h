// SPDX-License-Identifier: BSD-2-Clause
// Must a lock be taken at all? Only when the caller's threading model lets two threads in.
#pragma once

#include <atomic>
#include <mutex>

#include "os/gate.h"
#include "os/spin.h"

namespace weft {

// Which threads the locks of a domain's objects keep out (fi_domain(3), "threading"): all others;
// or, where the program lets one thread in at a time, those that come through the gate of the
// domain.
struct Locking {
  // True: every other thread. False: none, of an object that one thread at a time uses.
  Locking(bool all_threads) : needed(all_threads) {}
  explicit Locking(Gate& foreign) : gate(&foreign) {}

  bool needed = false;
  Gate* gate = nullptr;
};

// A lock for sections of well under a microsecond that hardly ever meet. Satisfies Lockable. Costs
// nothing where it keeps no thread out.
//
// No thread is woken by unlock(), which therefore is a plain store: half of what a std::mutex costs
// where none waits, and a message takes several of these.
class SpinLock {
 public:
  explicit SpinLock(bool needed) : needed_(needed) {}

  // Blocks until this thread may enter.
  void lock() {
    if (needed_ && held_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      wait();
  }
  // Enters when no other thread is inside.
  bool try_lock() { return !needed_ || !held_.exchange(true, std::memory_order_acquire); }
  // Leaves.
  void unlock() {
    if (needed_) held_.store(false, std::memory_order_release);
  }

 private:
  [[gnu::noinline]] void wait() {
    spin_until([this] {
      const bool free = !held_.load(std::memory_order_relaxed);
      return free && !held_.exchange(true, std::memory_order_acquire);
    });
  }

  std::atomic<bool> held_{false};
  const bool needed_;
};

// The stay of an owner behind the gate of a domain, if there is one. Visits of one thread end in
// the reverse order of their beginnings. One lasts for several objects of the domain.
class Visit {
 public:
  // Waits while a foreign thread is inside.
  explicit Visit(Gate* gate) : gate_(gate), depth_(gate != nullptr ? gate->enter() : 0) {}
  ~Visit() {
    if (gate_ != nullptr) gate_->leave(depth_);
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  Gate* const gate_;
  const unsigned depth_;
};

// The lock of an object of a domain, taken by a Section.
class OptionalLock {
 public:
  explicit OptionalLock(const Locking& locking = true)
      : gate_(locking.gate), own_(locking.needed) {}

  // What a caller takes that is inside the domain already: on a visit, or holding another lock.
  SpinLock& inner() { return own_; }
  Gate* gate() const { return gate_; }

 private:
  Gate* const gate_;
  SpinLock own_;
};

// Visits the domain and holds the lock of an object of it. Blocks until the thread may enter.
class Section {
 public:
  explicit Section(OptionalLock& lock) : visit_(lock.gate()), guard_(lock.inner()) {}

 private:
  const Visit visit_;
  const std::lock_guard<SpinLock> guard_;
};

// Keeps the threads that move data out of a domain for a moment, where no lock does. For control
// calls, which any thread may make under every threading model. Guards nest.
class ForeignGuard {
 public:
  explicit ForeignGuard(Gate* gate) : gate_(gate) {
    if (gate_ != nullptr) gate_->enter_foreign();
  }
  ~ForeignGuard() {
    if (gate_ != nullptr) gate_->leave_foreign();
  }
  ForeignGuard(const ForeignGuard&) = delete;
  ForeignGuard& operator=(const ForeignGuard&) = delete;

 private:
  Gate* const gate_;
};

// As std::lock_guard, for control calls. The thread must not be inside the domain as an owner.
class ControlGuard {
 public:
  explicit ControlGuard(OptionalLock& lock) : foreign_(lock.gate()), guard_(lock.inner()) {}

 private:
  const ForeignGuard foreign_;
  const std::lock_guard<SpinLock> guard_;
};

}  // namespace weft
