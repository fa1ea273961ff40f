// SPDX-License-Identifier: BSD-2-Clause
// Which type has a point in time?
#pragma once

#include <chrono>

namespace weft {

// A point on the monotonic clock (CLOCK_MONOTONIC).
using Time = std::chrono::steady_clock::time_point;

}  // namespace weft
