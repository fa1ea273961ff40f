// SPDX-License-Identifier: BSD-2-Clause
// Where are refused accesses of a libfabric program told and counted?
#pragma once

#include "base/refusal_log.h"
#include "base/stats.h"

namespace weft::device {

// To warn(), of all devices of the process. Any thread.
RefusalLog& refusal_log();

// The counter of operations that were refused for that reason (RefusedAccess::reason, not 0).
Stat refusal_counter(int reason);

}  // namespace weft::device
