// SPDX-License-Identifier: BSD-2-Clause
// What wakes the threads that sleep on an endpoint?
#pragma once

#include <unordered_map>

#include "os/fd.h"
#include "os/wake_set.h"

namespace weft::messaging {

// The threads that sleep on an endpoint. Arrivals wake them, and so does the end of a watched
// process, since a sleeping thread does not poll the clock. Used with the endpoint's lock held.
class Sleepers {
 public:
  // They sleep on the wake set of their port, which outlives this.
  explicit Sleepers(os::WakeSet& set) : set_(set) {}

  // One thread more.
  void add() { ++count_; }
  // One thread less; true when none is left.
  bool remove() { return --count_ == 0; }
  // How many threads sleep.
  int count() const { return count_; }
  // Has the end of that process wake them. Nothing for 0, and for one that is watched already.
  // False when it has ended already.
  bool watch(int process);
  // Wakes them.
  void wake() { set_.ring(); }
  // Watches processes no more that have ended; true when there were some.
  bool forget_ended();

 private:
  os::WakeSet& set_;
  std::unordered_map<int, os::Fd> watched_;  // by process
  int count_ = 0;
};

}  // namespace weft::messaging
