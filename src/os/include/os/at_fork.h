// SPDX-License-Identifier: BSD-2-Clause
// What does a process put in order around each fork(2)?
#pragma once

#include <mutex>

namespace weft::os {

// An entry in the one list of what forks of this process take care of (pthread_atfork(3)). Entries
// have static storage or live for ever, and begin while their library is loaded: no thread can fork
// between. Before a fork they come by falling rank of their module (src/README.md), which is the
// order in which threads take locks of several modules; after it, in parent and child, the other
// way round. No entry waits for a thread that waits for another entry.
class AtFork {
 public:
  using Step = void (*)();

  // The fork holds `mutex`, of which the process has one: the child finds what it guards whole, and
  // may take it.
  AtFork(unsigned rank, std::mutex& mutex);
  // The same for more than a mutex.
  AtFork(unsigned rank, Step before, Step in_parent, Step in_child);
  // Only the child does something.
  AtFork(unsigned rank, Step in_child) : AtFork(rank, nullptr, nullptr, in_child) {}
  AtFork(const AtFork&) = delete;
  AtFork& operator=(const AtFork&) = delete;

 private:
  struct List;

  void enlist();
  bool locks() const { return mutex_ != nullptr || before_ != nullptr; }
  void prepare();
  void resume(Step step);

  const unsigned rank_;
  std::mutex* const mutex_ = nullptr;
  const Step before_ = nullptr;
  const Step in_parent_ = nullptr;
  const Step in_child_ = nullptr;
  bool holds_ = false;  // what it locks was locked before the fork that is under way
  AtFork* next_ = nullptr;
};

}  // namespace weft::os
