// SPDX-License-Identifier: BSD-2-Clause
// What can a thread sleep on, and how are several such things one descriptor?
#pragma once

#include <chrono>

#include "base/result.h"
#include "os/fd.h"

namespace weft::os {

// A descriptor that this process makes readable (eventfd(2)).
class Event {
 public:
  // Errors: those of eventfd(2).
  static Result<Event> create();
  int fd() const { return fd_.get(); }
  // Makes the descriptor readable.
  void set();
  // Makes it unreadable.
  void clear();

 private:
  Fd fd_;
};

// One descriptor that is readable while any of its members is (epoll(7)).
class EventSet {
 public:
  // Errors: those of epoll_create1(2).
  static Result<EventSet> create();
  int fd() const { return fd_.get(); }
  // Adds a descriptor, which must leave before it is closed. Errors: those of epoll_ctl(2).
  Status add(int fd);
  // Takes it out.
  void remove(int fd);

 private:
  Fd fd_;
};

// Sleeps until `fd` is readable or the time is over (negative: no limit). True when readable.
// Interrupted by a signal it returns false early.
bool wait_readable(int fd, std::chrono::milliseconds timeout);

// A descriptor that becomes readable when process `pid` ends; nothing where that cannot be had.
Fd watch_process(int pid);

}  // namespace weft::os
