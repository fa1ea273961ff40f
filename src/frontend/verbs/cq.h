// SPDX-License-Identifier: BSD-2-Clause
// Which ports do polls of a completion queue drive?
#pragma once

#include "objects.h"

namespace weft::verbs {

// Polls and waits of that queue drive the port from now on, or not any more. Counted: for each
// queue pair that reports there.
Status drive(VerbsCq& queue, queue::QpPort& port);
void stop_driving(VerbsCq& queue, queue::QpPort& port);

}  // namespace weft::verbs
