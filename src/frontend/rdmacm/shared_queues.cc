// SPDX-License-Identifier: BSD-2-Clause
// Which shared receive queues and completion queues does an id own?
#include "shared_queues.h"

#include <cerrno>

#include "boundary.h"

namespace weft::rdmacm {
namespace {

Status make_completion_queue(CmId& id, std::uint32_t entries, ibv_comp_channel*& channel,
                             ibv_cq*& queue) {
  channel = ibv_create_comp_channel(id.verbs);
  if (channel == nullptr) return error_of_errno("ibv_create_comp_channel");
  queue = ibv_create_cq(id.verbs, static_cast<int>(entries), &id, channel, 0);
  if (queue != nullptr) return {};
  const Error error = error_of_errno("ibv_create_cq");
  ibv_destroy_comp_channel(channel);
  channel = nullptr;
  return error;
}

// One that the program has made has no channel in the id.
void destroy_completion_queue(ibv_comp_channel*& channel, ibv_cq*& queue) {
  if (queue != nullptr && channel != nullptr && ibv_destroy_cq(queue) == 0) queue = nullptr;
  if (queue == nullptr && channel != nullptr && ibv_destroy_comp_channel(channel) == 0) {
    channel = nullptr;
  }
}

Status create_srq(CmId& id, ibv_srq_init_attr_ex& attributes) {
  if ((attributes.comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0) return Error{EINVAL, "no type"};
  if (id.verbs == nullptr) return Error{EINVAL, "the id is bound to no device"};
  if (id.srq != nullptr) return Error{EINVAL, "the id has a shared receive queue"};
  if ((attributes.comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attributes.pd == nullptr) {
    attributes.pd = id.pd;
    attributes.comp_mask |= IBV_SRQ_INIT_ATTR_PD;
  }
  if (attributes.pd == nullptr || attributes.pd->context != id.verbs) {
    return Error{EINVAL, "a protection domain of another device"};
  }
  if (attributes.srq_type == IBV_SRQT_XRC) {
    if ((attributes.comp_mask & IBV_SRQ_INIT_ATTR_XRCD) == 0 || attributes.xrcd == nullptr) {
      auto domain = DeviceTable::instance().xrcd_of(*id.local.device);
      if (!domain) return domain.error();
      attributes.xrcd = domain.value();
      attributes.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
    }
    if ((attributes.comp_mask & IBV_SRQ_INIT_ATTR_CQ) == 0 || attributes.cq == nullptr) {
      if (id.recv_cq == nullptr) {
        if (Status made = make_completion_queues(id, 0, attributes.attr.max_wr); !made) return made;
      }
      attributes.cq = id.recv_cq;
      attributes.comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
    }
  }
  ibv_srq* const queue = ibv_create_srq_ex(id.verbs, &attributes);
  if (queue == nullptr) {
    const Error error = error_of_errno("ibv_create_srq_ex");
    if (id.qp == nullptr) destroy_completion_queues(id);
    return error;
  }
  id.srq = queue;
  return {};
}

}  // namespace

Status make_completion_queues(CmId& id, std::uint32_t sends, std::uint32_t receives) {
  if (receives != 0) {
    Status made = make_completion_queue(id, receives, id.recv_cq_channel, id.recv_cq);
    if (!made) return made;
  }
  if (sends == 0) return {};
  Status made = make_completion_queue(id, sends, id.send_cq_channel, id.send_cq);
  if (!made && receives != 0) destroy_completion_queue(id.recv_cq_channel, id.recv_cq);
  return made;
}

void destroy_completion_queues(CmId& id) {
  if (id.qp_type == IBV_QPT_XRC_RECV && id.srq != nullptr) return;
  destroy_completion_queue(id.send_cq_channel, id.send_cq);
  destroy_completion_queue(id.recv_cq_channel, id.recv_cq);
}

void retry_destroyed_queues(CmId& id) {
  std::erase_if(id.destroyed_queues, [](ibv_srq* each) { return ibv_destroy_srq(each) == 0; });
}

}  // namespace weft::rdmacm

using namespace weft::rdmacm;

extern "C" {

int rdma_create_srq_ex(rdma_cm_id* id, ibv_srq_init_attr_ex* attributes) {
  if (id == nullptr || attributes == nullptr) return minus_one_with(EINVAL);
  return at_c_border([&] { return create_srq(CmId::of(id), *attributes); });
}

int rdma_create_srq(rdma_cm_id* id, ibv_pd* pd, ibv_srq_init_attr* attributes) {
  if (id == nullptr || attributes == nullptr) return minus_one_with(EINVAL);
  ibv_srq_init_attr_ex extended{};
  extended.srq_context = attributes->srq_context;
  extended.attr = attributes->attr;
  extended.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  extended.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
  extended.pd = pd;
  const int failed = rdma_create_srq_ex(id, &extended);
  if (failed == 0) attributes->attr = extended.attr;
  return failed;
}

void rdma_destroy_srq(rdma_cm_id* handle) {
  if (handle == nullptr || handle->srq == nullptr) return;
  CmId& id = CmId::of(handle);
  if (ibv_destroy_srq(id.srq) != 0) id.destroyed_queues.push_back(id.srq);
  id.srq = nullptr;
  if (id.qp == nullptr) destroy_completion_queues(id);
}

}  // extern "C"
