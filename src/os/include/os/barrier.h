// SPDX-License-Identifier: BSD-2-Clause
// How does one process make another's stores visible without the other paying for it?
//
// Two processes that each store one word and then load the other's need a full fence between store
// and load on both sides. When one side is rare (going to sleep, closing a region) and the other is
// every message, the rare side can run a barrier on every processor instead (membarrier(2),
// MEMBARRIER_CMD_GLOBAL_EXPEDITED) and the frequent side needs no instruction at all.
#pragma once

namespace weft::os {

// Registers this process for barriers of other processes; true when it is. Cheap after the first.
bool heeds_remote_barriers();

// A full fence on every thread of this process. False where the kernel has none: then it must not
// be relied on. Cheap where there is one thread only.
bool can_raise_process_barriers();
void process_barrier();

// Registers for both kinds of barriers if this process has no second thread yet. With more threads
// a registration waits until every processor has switched tasks: 10 to 30 ms.
void register_for_barriers_early();

// True when remote_barrier() works on this system.
bool can_raise_remote_barriers();

// A full fence on every thread of every process that heeds remote barriers. Without kernel support
// it is a fence of this thread only: peers must then be told to fence by themselves.
void remote_barrier();

}  // namespace weft::os
