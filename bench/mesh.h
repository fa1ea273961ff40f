// SPDX-License-Identifier: BSD-2-Clause
// How long do many processes take that connect to each other at once?
#pragma once

#include <vector>

#include "channel.h"
#include "options.h"

namespace weft::bench {

// The processes at the other ends of `members` stand in a ring. On a signal each connects to the
// next options.reach ones, options.under_way at once: half of their number is all to all. The
// seconds from the signal until every connection has carried a message and its answer.
double run_mesh(const Options& options, std::vector<Channel>& members);

// One of those processes.
void run_member(const Options& options, Channel& channel);

}  // namespace weft::bench
