// SPDX-License-Identifier: BSD-2-Clause
// What a server does from its first phase to its last.
#pragma once

#include "channel.h"
#include "options.h"

namespace weft::bench {

// Does the phases that the client asks for over CHANNEL until it says that it is finished, bound to
// CORE from the first one on.
void run_server(const Options& options, int core, Channel& channel);

}  // namespace weft::bench
