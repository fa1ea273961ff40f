// SPDX-License-Identifier: BSD-2-Clause
// How does a thread that sleeps on descriptors wake up in time?
#pragma once

#include <chrono>

#include "base/result.h"
#include "os/fd.h"

namespace weft::os {

// A descriptor that becomes readable when a time is over (timerfd_create(2)). One thread at a time.
class Timer {
 public:
  static constexpr std::chrono::nanoseconds kNever = std::chrono::nanoseconds::max();

  // Errors: those of timerfd_create(2).
  static Result<Timer> create();
  int fd() const { return fd_.get(); }
  // Readable that much later, instead of when it was set to before; at once when it is 0 or less.
  // Until then it is not readable.
  void set(std::chrono::nanoseconds later);

 private:
  Fd fd_;
};

}  // namespace weft::os
