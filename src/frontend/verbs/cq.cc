// SPDX-License-Identifier: BSD-2-Clause
// How are completion queues made, polled and armed?
#include "abi.h"
#include "boundary.h"
#include "operations.h"

namespace weft::verbs {

ibv_cq_ex* create_cq_ex(ibv_context*, ibv_cq_init_attr_ex*) { return null_with(EOPNOTSUPP); }

int poll_cq(ibv_cq*, int, ibv_wc*) { return minus_one_with(EOPNOTSUPP); }

int req_notify_cq(ibv_cq*, int) { return status_with(EOPNOTSUPP); }

int modify_cq(ibv_cq*, ibv_modify_cq_attr*) { return status_with(EOPNOTSUPP); }

}  // namespace weft::verbs

using weft::verbs::null_with;
using weft::verbs::status_with;

ibv_cq* ibv_create_cq(ibv_context*, int, void*, ibv_comp_channel*, int) {
  return null_with(EOPNOTSUPP);
}

int ibv_resize_cq(ibv_cq*, int) { return status_with(EOPNOTSUPP); }

int ibv_destroy_cq(ibv_cq*) { return status_with(EOPNOTSUPP); }
