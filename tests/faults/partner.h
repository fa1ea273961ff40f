// SPDX-License-Identifier: BSD-2-Clause
// Which process answers a process in shortage?
#pragma once

#include "fork_server.h"
#include "mode.h"

namespace weft::faults {

// Lacks nothing: answers every message with the same bytes and connects where it is told to,
// whatever becomes of the other side, until `channel` says that it is over. Tells its address over
// the channel first.
int live_as_partner(const Channel& channel, const Mode& mode);

}  // namespace weft::faults
