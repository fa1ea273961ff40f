// SPDX-License-Identifier: BSD-2-Clause
// How does a test hold another process at an exact place?
#pragma once

#include <sys/types.h>

namespace weft::faults {

// A single-threaded child of this process that stops where it makes a certain system call: for the
// device it is a process that is stopped just there, as by SIGSTOP. ptrace(2); needs no hook.
class Tracee {
 public:
  // Attaches. False from attached(): this machine does not allow that.
  explicit Tracee(pid_t process);
  // Lets go.
  ~Tracee();
  Tracee(const Tracee&) = delete;
  Tracee& operator=(const Tracee&) = delete;

  bool attached() const { return held_; }
  // Lets it run until it makes the system call `number`, which has not begun then. Ends the test if
  // the process ends instead.
  void hold_at(long number);
  // Lets it run on, and traces it no more.
  void let_go();
  // Forgets a process that was ended.
  void forget() { held_ = false; }

 private:
  const pid_t process_;
  bool held_ = false;
};

}  // namespace weft::faults
