// SPDX-License-Identifier: BSD-2-Clause
// How does an id get its queue pair? (rdma_create_qp(3))
#include <cerrno>

#include "boundary.h"
#include "cm_id.h"
#include "pair_states.h"
#include "shared_queues.h"

namespace weft::rdmacm {
namespace {

template <class T>
bool differ(const T* known, const T* wanted) {
  return known != nullptr && wanted != nullptr && known != wanted;
}

Status complete(CmId& id, ibv_qp_init_attr_ex& attributes) {
  if (id.verbs == nullptr) return Error{EINVAL, "the id is bound to no device"};
  if (id.qp != nullptr) return Error{EINVAL, "the id has a queue pair"};
  if ((attributes.comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attributes.pd == nullptr) {
    attributes.pd = id.pd;
    attributes.comp_mask |= IBV_QP_INIT_ATTR_PD;
  }
  if (attributes.pd->context != id.verbs) {
    return Error{EINVAL, "a protection domain of another device"};
  }
  if (differ(id.send_cq, attributes.send_cq) || differ(id.recv_cq, attributes.recv_cq) ||
      differ(id.srq, attributes.srq)) {
    return Error{EINVAL, "the id has another queue"};
  }
  if (id.qp_type == IBV_QPT_XRC_RECV && (attributes.comp_mask & IBV_QP_INIT_ATTR_XRCD) == 0) {
    auto domain = DeviceTable::instance().xrcd_of(*id.local.device);
    if (!domain) return domain.error();
    attributes.xrcd = domain.value();
    attributes.comp_mask |= IBV_QP_INIT_ATTR_XRCD;
  }
  return {};
}

Status create(CmId& id, ibv_qp_init_attr_ex& attributes) {
  if (Status fits = complete(id, attributes); !fits) return fits;
  const bool had_sends = id.send_cq != nullptr || attributes.send_cq != nullptr;
  const bool had_receives = id.recv_cq != nullptr || attributes.recv_cq != nullptr;
  if (Status made = make_completion_queues(id, had_sends ? 0 : attributes.cap.max_send_wr,
                                           had_receives ? 0 : attributes.cap.max_recv_wr);
      !made) {
    return made;
  }
  if (attributes.send_cq == nullptr) attributes.send_cq = id.send_cq;
  if (attributes.recv_cq == nullptr) attributes.recv_cq = id.recv_cq;
  if (attributes.srq == nullptr) attributes.srq = id.srq;
  ibv_qp* const pair = ibv_create_qp_ex(id.verbs, &attributes);
  if (pair == nullptr) {
    const Error error = error_of_errno("ibv_create_qp_ex");
    destroy_completion_queues(id);
    return error;
  }
  if (Status begun = begin(id, *pair); !begun) {
    ibv_destroy_qp(pair);
    destroy_completion_queues(id);
    return begun;
  }
  id.pd = attributes.pd;
  id.qp = pair;
  return {};
}

}  // namespace
}  // namespace weft::rdmacm

using namespace weft::rdmacm;

extern "C" {

int rdma_create_qp_ex(rdma_cm_id* id, ibv_qp_init_attr_ex* attributes) {
  if (id == nullptr || attributes == nullptr) return minus_one_with(EINVAL);
  return at_c_border([&] { return create(CmId::of(id), *attributes); });
}

int rdma_create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* attributes) {
  if (id == nullptr || attributes == nullptr) return minus_one_with(EINVAL);
  ibv_qp_init_attr_ex extended{};
  extended.qp_context = attributes->qp_context;
  extended.send_cq = attributes->send_cq;
  extended.recv_cq = attributes->recv_cq;
  extended.srq = attributes->srq;
  extended.cap = attributes->cap;
  extended.qp_type = attributes->qp_type;
  extended.sq_sig_all = attributes->sq_sig_all;
  if (pd != nullptr) {
    extended.comp_mask = IBV_QP_INIT_ATTR_PD;
    extended.pd = pd;
  }
  const int failed = rdma_create_qp_ex(id, &extended);
  if (failed == 0) {
    attributes->send_cq = extended.send_cq;
    attributes->recv_cq = extended.recv_cq;
    attributes->srq = extended.srq;
    attributes->cap = extended.cap;
  }
  return failed;
}

void rdma_destroy_qp(rdma_cm_id* handle) {
  if (handle == nullptr || handle->qp == nullptr) return;
  CmId& id = CmId::of(handle);
  ibv_destroy_qp(id.qp);
  id.qp = nullptr;
  retry_destroyed_queues(id);
  destroy_completion_queues(id);
}

}  // extern "C"
