// SPDX-License-Identifier: BSD-2-Clause
// What does the handle in an info stand for? fi_endpoint(3), fi_eq(3)
#include "passive_endpoints.h"

#include <rdma/fi_errno.h>

#include <algorithm>

#include "pep.h"

namespace weft::fabric {

void PassiveEndpoints::add(PassiveEndpoint& endpoint) {
  const std::lock_guard guard(mutex_);
  endpoints_.push_back(&endpoint);
}

void PassiveEndpoints::remove(PassiveEndpoint& endpoint) {
  const std::lock_guard guard(mutex_);
  std::erase(endpoints_, &endpoint);
}

int PassiveEndpoints::take(const fid* handle, Beginning& beginning) {
  const std::lock_guard guard(mutex_);
  for (PassiveEndpoint* endpoint : endpoints_) {
    if (endpoint->inherited()) continue;
    if (handle == &endpoint->fid) return endpoint->give_port(beginning);
    if (endpoint->give_request(handle, beginning)) return 0;
  }
  return -FI_EINVAL;
}

}  // namespace weft::fabric
