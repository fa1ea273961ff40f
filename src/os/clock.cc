// SPDX-License-Identifier: BSD-2-Clause
// What time is it, exactly or cheaply?
#include "os/clock.h"

#include <ctime>

namespace weft::os {

Time coarse_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return Time(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

}  // namespace weft::os
