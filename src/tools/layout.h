// SPDX-License-Identifier: BSD-2-Clause
// Where are the libraries that this command makes programs load?
#pragma once

#include <string>

#include "base/result.h"

namespace weft::tools {

// Folders, as absolute paths.
struct Libraries {
  std::string verbs;   // of libibverbs.so.1, and of nothing else that a program could load
  std::string fabric;  // of libweft-fi.so
};

// Those that belong to the command in the folder `programs`: of the same build, or installed with
// it. Errors: ENOENT when there are none.
Result<Libraries> find_libraries(const std::string& programs);

// The same for the command that runs.
Result<Libraries> own_libraries();

}  // namespace weft::tools
