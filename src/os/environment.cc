// SPDX-License-Identifier: BSD-2-Clause
// What did the user say by environment variables?
#include "os/environment.h"

#include <stdlib.h>

namespace weft::os {

std::string environment(const char* name) {
  const char* set = ::secure_getenv(name);
  return set != nullptr ? set : "";
}

}  // namespace weft::os
