// SPDX-License-Identifier: BSD-2-Clause
// Must a lock be taken at all? Only when the caller's threading model lets two threads in.
#pragma once

#include <atomic>
#include <mutex>

#include "os/biased_lock.h"
#include "os/spin.h"

namespace weft {

// Which threads the locks of a domain's objects keep out (fi_domain(3), "threading"): all others;
// or, where the program lets one thread in at a time, those that come through the biased lock of
// the domain.
struct Locking {
  // True: every other thread. False: none, of an object that one thread at a time uses.
  Locking(bool all_threads) : needed(all_threads) {}
  explicit Locking(BiasedLock& foreign) : biased_lock(&foreign) {}

  bool needed = false;
  BiasedLock* biased_lock = nullptr;
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

// The stay of an owner behind the biased lock of a domain, if there is one. Visits of one thread
// end in the reverse order of their beginnings. One lasts for several objects of the domain.
class ExclusiveEntry {
 public:
  // Waits while a foreign thread is inside.
  explicit ExclusiveEntry(BiasedLock* biased_lock)
      : biased_lock_(biased_lock), depth_(biased_lock != nullptr ? biased_lock->enter() : 0) {}
  ~ExclusiveEntry() {
    if (biased_lock_ != nullptr) biased_lock_->leave(depth_);
  }
  ExclusiveEntry(const ExclusiveEntry&) = delete;
  ExclusiveEntry& operator=(const ExclusiveEntry&) = delete;

 private:
  BiasedLock* const biased_lock_;
  const unsigned depth_;
};

// The lock of an object of a domain, taken by a Section.
class OptionalLock {
 public:
  explicit OptionalLock(const Locking& locking = true)
      : biased_lock_(locking.biased_lock), own_(locking.needed) {}

  // What a caller takes that is inside the domain already: on a visit, or holding another lock.
  SpinLock& inner() { return own_; }
  BiasedLock* biased_lock() const { return biased_lock_; }

 private:
  BiasedLock* const biased_lock_;
  SpinLock own_;
};

// Visits the domain and holds the lock of an object of it. Blocks until the thread may enter.
class Section {
 public:
  explicit Section(OptionalLock& lock) : visit_(lock.biased_lock()), guard_(lock.inner()) {}

 private:
  const ExclusiveEntry visit_;
  const std::lock_guard<SpinLock> guard_;
};

// Keeps the threads that move data out of a domain for a moment, where no lock does. For control
// calls, which any thread may make under every threading model. Guards nest.
class ForeignGuard {
 public:
  explicit ForeignGuard(BiasedLock* biased_lock) : biased_lock_(biased_lock) {
    if (biased_lock_ != nullptr) biased_lock_->enter_foreign();
  }
  ~ForeignGuard() {
    if (biased_lock_ != nullptr) biased_lock_->leave_foreign();
  }
  ForeignGuard(const ForeignGuard&) = delete;
  ForeignGuard& operator=(const ForeignGuard&) = delete;

 private:
  BiasedLock* const biased_lock_;
};

// As std::lock_guard, for control calls. The thread must not be inside the domain as an owner.
class ControlGuard {
 public:
  explicit ControlGuard(OptionalLock& lock) : foreign_(lock.biased_lock()), guard_(lock.inner()) {}

 private:
  const ForeignGuard foreign_;
  const std::lock_guard<SpinLock> guard_;
};

}  // namespace weft
