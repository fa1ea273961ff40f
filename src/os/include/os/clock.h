// SPDX-License-Identifier: BSD-2-Clause
// What time is it, exactly or cheaply?
#pragma once

#include "base/time.h"

namespace weft::os {

using weft::Time;

// Now, to a few milliseconds, in a few nanoseconds (CLOCK_MONOTONIC_COARSE).
Time coarse_now();

}  // namespace weft::os
