// SPDX-License-Identifier: BSD-2-Clause
// Which functions does a program call through the tables of its context?
#include "operations.h"

namespace weft::verbs {
namespace {

// The slots that inline functions call without looking have a function each.
void fill_old_table(ibv_context_ops& table) {
  table._compat_query_device = ::ibv_query_device;
  table._compat_query_port = ::ibv_query_port;
  table.alloc_mw = alloc_mw;
  table.bind_mw = bind_mw;
  table.dealloc_mw = dealloc_mw;
  table.poll_cq = poll_cq;
  table.req_notify_cq = req_notify_cq;
  table.post_srq_recv = post_srq_recv;
  table.post_send = post_send;
  table.post_recv = post_recv;
}

}  // namespace

void fill_operations(verbs_context& verbs) {
  fill_old_table(verbs.context.ops);
  verbs.query_port = query_port;
  verbs.query_device_ex = query_device_ex;
  verbs.query_rt_values = query_rt_values;
  verbs.advise_mr = advise_mr;
  verbs.create_cq_ex = create_cq_ex;
  verbs.modify_cq = modify_cq;
  verbs.create_qp_ex = create_qp_ex;
  verbs.open_qp = open_qp;
  verbs.create_srq_ex = create_srq_ex;
  verbs.get_srq_num = get_srq_num;
  verbs.open_xrcd = open_xrcd;
  verbs.close_xrcd = close_xrcd;
}

void fill_operations(verbs_context_exp& verbs) {
  verbs.exp_reg_mr = exp_reg_mr;
  verbs.exp_reg_shared_mr = exp_reg_shared_mr;
  verbs.exp_query_device = exp_query_device;
  verbs.query_mr_memory = query_mr_memory;
}

}  // namespace weft::verbs
