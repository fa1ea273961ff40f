// SPDX-License-Identifier: BSD-2-Clause
// What does a process do until it is killed?
#pragma once

#include "action.h"
#include "fork_server.h"

namespace weft::faults {

// Opens an endpoint, lets the survivor greet it (unless the order is early), then exchanges
// operations of the order's kind until the moment of death that the order sets. Does not return;
// ends otherwise than by SIGKILL only to report a broken rule.
[[noreturn]] void live_as_victim(const Order& order, const Channel& channel);

}  // namespace weft::faults
