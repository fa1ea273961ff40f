// SPDX-License-Identifier: BSD-2-Clause
// How does a thread that sleeps on descriptors wake up in time?
#include "os/timer.h"

#include <sys/timerfd.h>

#include <algorithm>

namespace weft::os {

Result<Timer> Timer::create() {
  Timer timer;
  timer.fd_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!timer.fd_.valid()) return last_error("cannot make a timer");
  return timer;
}

void Timer::set(std::chrono::nanoseconds later) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  itimerspec when{};
  if (later != kNever) {
    const std::int64_t ns = std::max<std::int64_t>(later.count(), 1);
    when.it_value = {ns / kSecond, ns % kSecond};
  }
  ::timerfd_settime(fd_.get(), 0, &when, nullptr);
}

}  // namespace weft::os
