// SPDX-License-Identifier: BSD-2-Clause
// What must a program do before it forks? Nothing: no page is pinned.
#include "abi.h"

int ibv_fork_init() { return 0; }

ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }

// In no installed header.
extern "C" int ibv_dontfork_range(void*, std::size_t) { return 0; }

extern "C" int ibv_dofork_range(void*, std::size_t) { return 0; }
