// SPDX-License-Identifier: BSD-2-Clause
// Where do the shared files of this user and network namespace lie?
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace weft::os {

// Makes sure that `base` (or, when empty, $WEFT_RUNTIME_DIR, or else /dev/shm/weft-UID) is a
// directory of this user that nobody else can enter, and in it one directory for this network
// namespace; returns the latter. Errors: EACCES when it belongs to somebody else or is open to
// others, and those of mkdir(2).
Result<std::string> runtime_directory(const std::string& base);

// Removes the shared files in `directory` whose owners are dead.
void sweep(const std::string& directory);

// A number that no other process will guess.
std::uint64_t random_number();

}  // namespace weft::os
