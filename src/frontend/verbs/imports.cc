// SPDX-License-Identifier: BSD-2-Clause
// Can objects of another process be imported? Not without a kernel that holds them.
#include "abi.h"
#include "boundary.h"

using weft::verbs::null_with;

ibv_context* ibv_import_device(int) { return null_with(EOPNOTSUPP); }

ibv_pd* ibv_import_pd(ibv_context*, std::uint32_t) { return null_with(EOPNOTSUPP); }

void ibv_unimport_pd(ibv_pd*) {}

ibv_mr* ibv_import_mr(ibv_pd*, std::uint32_t) { return null_with(EOPNOTSUPP); }

void ibv_unimport_mr(ibv_mr*) {}

ibv_dm* ibv_import_dm(ibv_context*, std::uint32_t) { return null_with(EOPNOTSUPP); }

void ibv_unimport_dm(ibv_dm*) {}
