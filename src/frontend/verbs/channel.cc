// SPDX-License-Identifier: BSD-2-Clause
// How does a program hear of completions?
#include "abi.h"
#include "boundary.h"

using weft::verbs::minus_one_with;
using weft::verbs::null_with;
using weft::verbs::status_with;

ibv_comp_channel* ibv_create_comp_channel(ibv_context*) { return null_with(EOPNOTSUPP); }

int ibv_destroy_comp_channel(ibv_comp_channel*) { return status_with(EOPNOTSUPP); }

int ibv_get_cq_event(ibv_comp_channel*, ibv_cq**, void**) { return minus_one_with(EOPNOTSUPP); }

void ibv_ack_cq_events(ibv_cq*, unsigned) {}
