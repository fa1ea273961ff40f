// SPDX-License-Identifier: BSD-2-Clause
// How does a test start its processes, and what does it require of their ends?
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace weft::faults {

// Loads the provider's library without opening anything: what fork copies must have no life of its
// own.
void load_library();

// A child that runs `life` and exits with what that returns. Killed if this object goes before it
// has ended.
class Process {
 public:
  Process(std::string name, const std::function<int()>& life);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t id() const { return id_; }
  // Ends it by SIGKILL; its id is free afterwards.
  void end() const;
  // Waits for the end. Ends the test if a signal ended the child; exits with the child's status
  // unless that is kPassed.
  void require_passed() const;

 private:
  std::string name_;
  pid_t id_;
  mutable bool ended_ = false;
};

}  // namespace weft::faults
