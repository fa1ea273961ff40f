// SPDX-License-Identifier: BSD-2-Clause
// How are shared receive queues made and used?
#include "abi.h"
#include "boundary.h"
#include "operations.h"

namespace weft::verbs {

ibv_srq* create_srq_ex(ibv_context*, ibv_srq_init_attr_ex*) { return null_with(EOPNOTSUPP); }

int get_srq_num(ibv_srq*, std::uint32_t*) { return status_with(EOPNOTSUPP); }

int post_srq_recv(ibv_srq*, ibv_recv_wr* first, ibv_recv_wr** bad) {
  if (bad != nullptr) *bad = first;
  return status_with(EOPNOTSUPP);
}

}  // namespace weft::verbs

using weft::verbs::null_with;
using weft::verbs::status_with;

ibv_srq* ibv_create_srq(ibv_pd*, ibv_srq_init_attr*) { return null_with(EOPNOTSUPP); }

int ibv_modify_srq(ibv_srq*, ibv_srq_attr*, int) { return status_with(EOPNOTSUPP); }

int ibv_query_srq(ibv_srq*, ibv_srq_attr*) { return status_with(EOPNOTSUPP); }

int ibv_destroy_srq(ibv_srq*) { return status_with(EOPNOTSUPP); }
