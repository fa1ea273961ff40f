// SPDX-License-Identifier: BSD-2-Clause
// What becomes of a C++ error at the border to C?
#pragma once

#include <rdma/fi_errno.h>

#include <exception>
#include <new>
#include <utility>

#include "base/result.h"

namespace weft::fabric {

// Runs `body`, which returns 0 or a negative fabric errno, and lets no exception out: memory that
// ran out becomes -FI_ENOMEM, anything else -FI_EOTHER. The cancellation of a thread that sleeps in
// there is no std::exception: it unwinds through (os/cancellation.h).
template <class Body>
auto at_c_border(Body&& body) -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return -FI_ENOMEM;
  } catch (const std::exception&) {
    return -FI_EOTHER;
  }
}

// The status that a libfabric call returns for `error`. Values below 256 are errno values on both
// sides (fi_errno(3)); the others are put into Error as FI_E* already.
inline int fabric_status(const Error& error) { return -error.code; }

}  // namespace weft::fabric
