// SPDX-License-Identifier: BSD-2-Clause
// What wakes the threads that sleep on an endpoint?
#pragma once

#include <unordered_map>
#include <utility>

#include "os/event.h"
#include "os/fd.h"

namespace weft::messaging {

// The threads that sleep on an endpoint, and the descriptor that wakes them: by what its members
// say, and by the end of a watched process, since a sleeping thread does not poll the clock. Used
// with the endpoint's lock held.
class Sleepers {
 public:
  // `set` wakes them already for what arrives.
  explicit Sleepers(os::EventSet set) : set_(std::move(set)) {}

  // Readable when a sleeper is to wake up; any thread.
  int fd() const { return set_.fd(); }
  // One thread more.
  void add() { ++count_; }
  // One thread less; true when none is left.
  bool remove() { return --count_ == 0; }
  // How many threads sleep.
  int count() const { return count_; }
  // Has the end of that process wake them. Nothing for 0, and for one that is watched already.
  void watch(int process);
  // Watches processes no more that have ended; true when there were some.
  bool forget_ended();

 private:
  os::EventSet set_;
  std::unordered_map<int, os::Fd> watched_;  // by process
  int count_ = 0;
};

}  // namespace weft::messaging
