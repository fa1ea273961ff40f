// SPDX-License-Identifier: BSD-2-Clause
// What time is it, exactly or cheaply?
#pragma once

#include <chrono>

namespace weft::os {

// A point on the monotonic clock.
using Time = std::chrono::steady_clock::time_point;

// Now, to a few milliseconds, in a few nanoseconds (CLOCK_MONOTONIC_COARSE).
Time coarse_now();

}  // namespace weft::os
