// SPDX-License-Identifier: BSD-2-Clause
// What wakes the threads that sleep on a port?
#pragma once

#include <chrono>

#include "base/result.h"
#include "base/time.h"
#include "os/event.h"
#include "os/origin.h"
#include "os/timer.h"

namespace weft::os {

// One descriptor that is readable while a member is, when a time is over, and after ring(). It
// costs two descriptors: an epoll set, and a timer, which is the bell, too. One thread at a time,
// but for fd(). A forked child shares the set with its parent, and changes nothing there.
class WakeSet {
 public:
  // Errors: those of epoll_create1(2), timerfd_create(2) and epoll_ctl(2).
  static Result<WakeSet> create();
  // For poll(2) and epoll(7).
  int fd() const { return members_.fd(); }
  // Adds a descriptor, which must leave before it is closed. Errors: those of epoll_ctl(2).
  Status add(int fd) { return members_.add(fd); }
  // Takes it out.
  void remove(int fd) { members_.remove(fd); }

  // Makes fd() readable until silence() or wake_in().
  void ring();
  // Undoes ring(). A time that has been set instead stays. Costs nothing without a ring.
  void silence();
  // Makes fd() readable that much later, instead of at the time that was set before; undoes ring().
  // Costs nothing when nothing was set and nothing is to be (Timer::kNever).
  void wake_in(std::chrono::nanoseconds later);
  // The same, but a time that was set before, is not over and is earlier stays. Saves a system call
  // where times move on.
  void wake_at_latest(std::chrono::nanoseconds later);
  // The same, unless fd() is or becomes readable earlier.
  void wake_within(std::chrono::nanoseconds later);

 private:
  EventSet members_;
  Timer timer_;
  Origin origin_;
  bool woken_ = false;
  Time due_ = Time::max();  // of the timer
};

}  // namespace weft::os
