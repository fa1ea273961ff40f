// SPDX-License-Identifier: BSD-2-Clause
// Functions of queue pairs that programs reach through the context.
#pragma once

#include "objects.h"

namespace weft::verbs {

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* wanted);
ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* wanted);

int post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad);
int post_recv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad);
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* first, ibv_recv_wr** bad);

// Fills the functions ibv_wr_*() of a queue pair that was created for these operations. False when
// its type has not all of them.
bool fill_work_functions(VerbsQp& pair, std::uint64_t operations);

// The address vector of an attribute. Errors: EINVAL for one without a global header, for a source
// index or a destination that this device has not.
Result<queue::QpAddress> address_of(ibv_context* context, const ibv_ah_attr& attribute);
void write_address(const queue::QpAddress& address, ibv_ah_attr& attribute);

}  // namespace weft::verbs
