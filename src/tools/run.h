// SPDX-License-Identifier: BSD-2-Clause
// What do `weft run` and `weft env` do?
#pragma once

#include <string>
#include <vector>

namespace weft::tools {

// Replaces this process by the program, whose environment makes it use Weft. Returns only on
// failure, after a line on stderr: the exit status, 127 for a program that is not found, 126 for
// one that cannot be run or would ignore the environment, as shells do, and 1 without Weft's
// libraries.
int run(const std::vector<std::string>& program_and_arguments, const std::string& links);

// Prints the same environment as assignments for sh(1). Returns the exit status.
int print_environment(const std::string& links);

}  // namespace weft::tools
