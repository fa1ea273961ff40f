// SPDX-License-Identifier: BSD-2-Clause
// Which shared receive queues and completion queues does an id own? (rdma_create_srq(3))
#pragma once

#include "base/result.h"
#include "cm_id.h"

namespace weft::rdmacm {

// Completion queues with channels, for those of the two whose size is not 0. Errors: those of
// ibv_create_comp_channel(3) and ibv_create_cq(3): then none is made.
Status make_completion_queues(CmId& id, std::uint32_t sends, std::uint32_t receives);
// Destroys the completion queues that this library has made for the id, unless they are in use: the
// one of receives belongs to the shared receive queue of an XRC target.
void destroy_completion_queues(CmId& id);
// rdma_destroy_srq(3) has found queues in use: tries again.
void retry_destroyed_queues(CmId& id);

}  // namespace weft::rdmacm
