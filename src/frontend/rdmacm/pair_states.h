// SPDX-License-Identifier: BSD-2-Clause
// How does the queue pair of an id go through its states? (rdma_create_qp(3), rdma_init_qp_attr(3))
#pragma once

#include "base/result.h"
#include "cm_id.h"

namespace weft::rdmacm {

// The attributes and their mask with which a queue pair goes to attributes.qp_state: INIT, RTR or
// RTS. Takes the lock. Errors: EINVAL for another state, or before the id knows them.
Status attributes_for(CmId& id, ibv_qp_attr& attributes, int& mask);
// Moves the queue pair of an id to RTR and RTS, or else to ERR. Errors: those of attributes_for()
// and ibv_modify_qp(3).
Status connect_pair(CmId& id);
// Makes a new queue pair ready for posts: INIT, and RTS of UD. Errors likewise.
Status begin(CmId& id, ibv_qp& pair);
// To ERR, if there is one.
void end_pair(CmId& id);

}  // namespace weft::rdmacm
