// SPDX-License-Identifier: BSD-2-Clause
// How does a requester read and write buffers of the program?
#pragma once

#include "work/local_memory.h"

namespace weft::rdm {

// Buffers of this process, mapped or not (os/user_memory.h). No key is checked: libfabric's local
// buffers need none. It has no state, and is for all threads.
work::LocalMemory& user_buffers();

}  // namespace weft::rdm
