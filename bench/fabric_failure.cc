// SPDX-License-Identifier: BSD-2-Clause
// How is a fatal error of libfabric told? Apart from failure.cc, so that a program without
// libfabric does not load it.
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <sys/resource.h>

#include <string>

#include "failure.h"

namespace weft::bench {
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

}  // namespace weft::bench
