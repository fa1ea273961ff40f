// SPDX-License-Identifier: BSD-2-Clause
// How are domains of XRC opened and closed?
#include "abi.h"
#include "boundary.h"
#include "operations.h"

namespace weft::verbs {

ibv_xrcd* open_xrcd(ibv_context*, ibv_xrcd_init_attr*) { return null_with(EOPNOTSUPP); }

int close_xrcd(ibv_xrcd*) { return status_with(EOPNOTSUPP); }

}  // namespace weft::verbs
