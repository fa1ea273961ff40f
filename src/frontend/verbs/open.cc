// SPDX-License-Identifier: BSD-2-Clause
// Which functions do programs reach through an open context? ibv_open_device(3)
#include "context.h"
#include "cq.h"
#include "polling.h"
#include "qp.h"
#include "query.h"
#include "srq.h"

namespace weft::verbs {
namespace {

void fill_operations(verbs_context& all) {
  ibv_context& context = all.context;
  context.ops.poll_cq = poll_cq;
  context.ops.req_notify_cq = req_notify_cq;
  context.ops.post_send = post_send;
  context.ops.post_recv = post_recv;
  context.ops.post_srq_recv = post_srq_recv;
  all.query_port = query_port;
  all.query_device_ex = query_device_ex;
  all.create_cq_ex = create_cq_ex;
  all.modify_cq = modify_cq;
  all.create_qp_ex = create_qp_ex;
  all.create_srq_ex = create_srq_ex;
  all.get_srq_num = get_srq_num;
  all.open_xrcd = open_xrcd;
  all.close_xrcd = close_xrcd;
}

}  // namespace
}  // namespace weft::verbs

extern "C" {

ibv_context* ibv_open_device(ibv_device* device) {
  using namespace weft::verbs;
  ibv_context* const opened = VerbsContext::open(*reinterpret_cast<VerbsDevice*>(device));
  if (opened != nullptr) fill_operations(extended(opened));
  return opened;
}
int ibv_close_device(ibv_context* context) { return weft::verbs::VerbsContext::close(context); }

}  // extern "C"
