// SPDX-License-Identifier: BSD-2-Clause
// What does a process put in order around each fork(2)?
#include "os/at_fork.h"

#include <pthread.h>

#include <atomic>
#include <utility>

namespace weft::os {

// A library that is loaded during a fork adds to it: before and after it there may be different
// entries.
struct AtFork::List {
  static constexpr unsigned kRanks = 10;
  static constinit std::atomic<AtFork*> first;

  static void before() {
    for (unsigned rank = kRanks; rank-- != 0;) each(rank, [](AtFork& entry) { entry.prepare(); });
  }
  static void in_parent() {
    after([](AtFork& entry) { entry.resume(entry.in_parent_); });
  }
  static void in_child() {
    after([](AtFork& entry) { entry.resume(entry.in_child_); });
  }

 private:
  template <class Act>
  static void after(Act act) {
    for (unsigned rank = 0; rank != kRanks; ++rank) each(rank, act);
  }
  template <class Act>
  static void each(unsigned rank, Act act) {
    for (AtFork* entry = first; entry != nullptr; entry = entry->next_) {
      if (entry->rank_ == rank) act(*entry);
    }
  }
};

constinit std::atomic<AtFork*> AtFork::List::first{nullptr};

AtFork::AtFork(unsigned rank, std::mutex& mutex) : rank_(rank), mutex_(&mutex) { enlist(); }

AtFork::AtFork(unsigned rank, Step before, Step in_parent, Step in_child)
    : rank_(rank), before_(before), in_parent_(in_parent), in_child_(in_child) {
  enlist();
}

void AtFork::enlist() {
  [[maybe_unused]] static const int registered =
      ::pthread_atfork(List::before, List::in_parent, List::in_child);
  next_ = List::first;
  while (!List::first.compare_exchange_weak(next_, this)) {
  }
}

void AtFork::prepare() {
  if (!locks()) return;
  if (mutex_ != nullptr) mutex_->lock();
  if (before_ != nullptr) before_();
  holds_ = true;
}

// No fork holds a lock that was not in the list before. Two threads that fork wait for each other
// at the first lock, and change no entry without one.
void AtFork::resume(Step step) {
  if (locks() && !std::exchange(holds_, false)) return;
  if (step != nullptr) step();
  if (mutex_ != nullptr) mutex_->unlock();
}

}  // namespace weft::os
