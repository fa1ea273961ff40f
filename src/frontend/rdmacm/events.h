// SPDX-License-Identifier: BSD-2-Clause
// How does a synchronous call wait for its event? (rdma_create_id(3))
#pragma once

#include "base/result.h"
#include "cm_id.h"

namespace weft::rdmacm {

// With a synchronous id: waits for the next event, which becomes id->event, and acknowledges the
// one before. Errors: its status, ECONNREFUSED for REJECTED; those of rdma_get_cm_event(3).
Status await(CmId& id);

}  // namespace weft::rdmacm
