// SPDX-License-Identifier: BSD-2-Clause
// How a fatal error is told.
#include "failure.h"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>

namespace weft::bench {

void die(std::string_view what, std::string_view why) {
  std::cerr << "weft_bench: " << what << ": " << why << std::endl;
  std::exit(1);
}

void check_fabric(long result, std::string_view what) {
  if (result < 0) die(what, fi_strerror(static_cast<int>(-result)));
}

long check_system(long result, std::string_view what) {
  if (result == -1) die(what, std::strerror(errno));
  return result;
}

}  // namespace weft::bench
