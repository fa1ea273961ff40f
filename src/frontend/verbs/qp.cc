// SPDX-License-Identifier: BSD-2-Clause
// How are queue pairs made, changed and used?
#include "abi.h"
#include "boundary.h"
#include "operations.h"

namespace weft::verbs {

ibv_qp* create_qp_ex(ibv_context*, ibv_qp_init_attr_ex*) { return null_with(EOPNOTSUPP); }

ibv_qp* open_qp(ibv_context*, ibv_qp_open_attr*) { return null_with(EOPNOTSUPP); }

int post_send(ibv_qp*, ibv_send_wr* first, ibv_send_wr** bad) {
  if (bad != nullptr) *bad = first;
  return status_with(EOPNOTSUPP);
}

int post_recv(ibv_qp*, ibv_recv_wr* first, ibv_recv_wr** bad) {
  if (bad != nullptr) *bad = first;
  return status_with(EOPNOTSUPP);
}

}  // namespace weft::verbs

using weft::verbs::null_with;
using weft::verbs::status_with;

ibv_qp* ibv_create_qp(ibv_pd*, ibv_qp_init_attr*) { return null_with(EOPNOTSUPP); }

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp*) { return nullptr; }

int ibv_modify_qp(ibv_qp*, ibv_qp_attr*, int) { return status_with(EOPNOTSUPP); }

int ibv_query_qp(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*) { return status_with(EOPNOTSUPP); }

int ibv_destroy_qp(ibv_qp*) { return status_with(EOPNOTSUPP); }

// No order of the bytes of a message is promised.
int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, std::uint32_t) { return 0; }

// Enhanced connection establishment is for devices of a vendor.
int ibv_set_ece(ibv_qp*, ibv_ece*) { return status_with(EOPNOTSUPP); }

int ibv_query_ece(ibv_qp*, ibv_ece*) { return status_with(EOPNOTSUPP); }
