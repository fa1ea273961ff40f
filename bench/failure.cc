// SPDX-License-Identifier: BSD-2-Clause
// How a fatal error is told.
#include "failure.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>

namespace weft::bench {

void die(std::string_view what, std::string_view why) {
  std::cerr << "weft_bench: " << what << ": " << why << std::endl;
  std::exit(1);
}

long check_system(long result, std::string_view what) {
  if (result == -1) die(what, std::strerror(errno));
  return result;
}

}  // namespace weft::bench
