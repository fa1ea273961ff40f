// SPDX-License-Identifier: BSD-2-Clause
// What did the user say by environment variables?
#pragma once

#include <string>

namespace weft::os {

// The value of that variable; empty when it is not set, or when the program has more rights than
// its caller (secure_getenv(3)).
std::string environment(const char* name);

}  // namespace weft::os
