// SPDX-License-Identifier: BSD-2-Clause
// Was an object made by this process, or inherited over a fork?
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::os {

class AtFork;

// Part of an object that holds a descriptor whose use concerns other processes, as that of a bound
// socket: a forked child has the same descriptor, and must not act in its parent's name. Copies
// belong to the same process. Any thread. A child of clone(2) or vfork(2) without glibc's fork
// handlers is taken for its parent.
class Origin {
 public:
  // True in a process forked after this was made. Costs a load.
  bool inherited() const { return forks_ != forks.load(std::memory_order_relaxed); }

 private:
  static std::atomic<std::uint32_t> forks;  // between the first process and this
  static AtFork at_fork;

  std::uint32_t forks_ = forks.load(std::memory_order_relaxed);
};

}  // namespace weft::os
