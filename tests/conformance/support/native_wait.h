// SPDX-License-Identifier: BSD-2-Clause
// How does a program of its own sleep on a wait object that libfabric gave it? (fi_poll(3))
#pragma once

#include <rdma/fi_eq.h>

namespace weft::conformance {

// Wait objects that a program may block on by itself.
inline constexpr fi_wait_obj kNativeObjects[] = {FI_WAIT_FD, FI_WAIT_POLLFD, FI_WAIT_MUTEX_COND};

const char* to_string(fi_wait_obj object);

// Blocks on the wait object of `object` once fi_trywait allows it. 0: it was signalled. -FI_EAGAIN:
// there is something to read already. -FI_ETIMEDOUT, or what fi_trywait or fi_control refused with.
int block_on(fid_fabric* fabric, fid* object, fi_wait_obj kind, int timeout_ms);

}  // namespace weft::conformance
