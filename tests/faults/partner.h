// SPDX-License-Identifier: BSD-2-Clause
// Who answers a process in shortage?
#pragma once

#include "manner.h"
#include "nursery.h"

namespace weft::faults {

// Lacks nothing: answers every message with the same bytes and connects where it is told to,
// whatever becomes of the other side, until `channel` says that it is over. Tells its address over
// the channel first.
int live_as_partner(const Channel& channel, const Manner& manner);

}  // namespace weft::faults
