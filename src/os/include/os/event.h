// SPDX-License-Identifier: BSD-2-Clause
// What can a thread sleep on, and how are several such things one descriptor?
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>

#include "base/result.h"
#include "os/fd.h"

namespace weft::os {

// A descriptor that this process makes readable (eventfd(2)).
class Event {
 public:
  // Errors: those of eventfd(2).
  static Result<Event> create();
  // One that a program sees: without O_NONBLOCK, which the program may set (fcntl(2)).
  static Result<Event> create_for_program();
  int fd() const { return fd_.get(); }
  // Makes the descriptor readable.
  void set();
  // Makes it unreadable. One for a program must be readable: the call may wait otherwise.
  void clear();

 private:
  static Result<Event> create(int flags);

  Fd fd_;
};

// One descriptor that is readable while any of its members is (epoll(7)). A forked child shares the
// set with its parent: there add() and remove() leave it alone.
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
  pid_t process_ = 0;  // that made it
};

// Several descriptors to sleep on that change from time to time (ppoll(2)). One thread.
class PollList {
 public:
  PollList();
  ~PollList();
  PollList(const PollList&) = delete;
  PollList& operator=(const PollList&) = delete;

  void clear();
  // Adds a descriptor; one below 0 never becomes readable.
  void add(int fd);
  // Sleeps until one of them is readable (true) or the time is over.
  bool wait(std::chrono::nanoseconds timeout);
  // Whether the one that was added as number `index` was readable when wait() ended.
  bool readable(std::size_t index) const;

 private:
  struct Entries;
  std::unique_ptr<Entries> entries_;
};

// False for a descriptor with O_NONBLOCK.
bool may_wait(int fd);

// Sleeps until `fd` is readable or the time is over (negative: no limit). True when readable.
// Interrupted by a signal it returns false early.
bool wait_readable(int fd, std::chrono::milliseconds timeout);
// The same sleep, in which a thread may be cancelled (os/cancellation.h): it must hold no lock, and
// what it has announced is undone by destructors. False when a signal handler has interrupted it.
bool sleep_or_cancelled(int fd, std::chrono::milliseconds timeout);
// True where read(2) would go on waiting after a signal handler of the program: no handler lacks
// SA_RESTART (sigaction(2)) but those that this thread blocks, and those of faults.
bool handlers_restart_calls();

// A descriptor that becomes readable when process `pid` ends; nothing where that cannot be had.
Fd watch_process(int pid);
bool is_this_process(int pid);

}  // namespace weft::os
