// SPDX-License-Identifier: BSD-2-Clause
// How is the command line of `weft` read?
#pragma once

namespace weft::tools {

// Does what the command line says. Returns the exit status.
int execute(int count, char** words);

}  // namespace weft::tools
