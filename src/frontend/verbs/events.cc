// SPDX-License-Identifier: BSD-2-Clause
// How does a program hear of asynchronous events?
#include "abi.h"
#include "boundary.h"

using weft::verbs::minus_one_with;

int ibv_get_async_event(ibv_context*, ibv_async_event*) { return minus_one_with(EOPNOTSUPP); }

void ibv_ack_async_event(ibv_async_event*) {}
