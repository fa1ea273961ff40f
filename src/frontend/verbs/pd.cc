// SPDX-License-Identifier: BSD-2-Clause
// How are protection domains made and given back?
#include "abi.h"
#include "boundary.h"

using weft::verbs::null_with;
using weft::verbs::status_with;

ibv_pd* ibv_alloc_pd(ibv_context*) { return null_with(EOPNOTSUPP); }

int ibv_dealloc_pd(ibv_pd*) { return status_with(EOPNOTSUPP); }
