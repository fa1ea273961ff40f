// SPDX-License-Identifier: BSD-2-Clause
// How a fatal error is told.
#include "failure.h"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

namespace weft::bench {

void die(std::string_view what, std::string_view why) {
  std::cerr << "weft_bench: " << what << ": " << why << std::endl;
  std::exit(1);
}

namespace {

// The metrics of connections have raised the soft limit as far as they may.
std::string explained(long error) {
  std::string why = fi_strerror(static_cast<int>(error));
  rlimit limit{};
  if (error == FI_EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    why += "; the limit is " + std::to_string(limit.rlim_cur) + " descriptors, the hard limit " +
           std::to_string(limit.rlim_max) + " (ulimit -n)";
  }
  return why;
}

}  // namespace

void check_fabric(long result, std::string_view what) {
  if (result < 0) die(what, explained(-result));
}

long check_system(long result, std::string_view what) {
  if (result == -1) die(what, std::strerror(errno));
  return result;
}

}  // namespace weft::bench
