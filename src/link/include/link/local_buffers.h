// SPDX-License-Identifier: BSD-2-Clause
// Are the local buffers of an access mapped as it needs them?
#pragma once

#include "link/flow.h"
#include "os/user_memory.h"

namespace weft::link {

// False when a page of a buffer is not mapped, or may not be written where a result goes. Buffers
// that are given to the kernel need no such check: it reports the page (EFAULT).
inline bool buffers_mapped(const AccessRequest& request) {
  return request.write ? os::readable(request.local) : os::writable(request.local, request.length);
}

inline bool buffers_mapped(const AtomicRequest& request) {
  return os::readable(request.operand) && os::readable(request.compare) &&
         os::writable(request.result, request.length);
}

}  // namespace weft::link
