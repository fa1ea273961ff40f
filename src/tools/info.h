// SPDX-License-Identifier: BSD-2-Clause
// What does `weft info` print?
#pragma once

namespace weft::tools {

// Prints the devices of this host, their GIDs and limits, and what this environment allows. Returns
// the exit status.
int print_info();

}  // namespace weft::tools
