// SPDX-License-Identifier: BSD-2-Clause
// How does a program get an id that is ready to connect or listen? (rdma_create_ep(3))
#include <cerrno>
#include <cstring>
#include <memory>

#include "addresses.h"
#include "boundary.h"
#include "cm_id.h"
#include "cm_space.h"

namespace weft::rdmacm {
namespace {

constexpr int kPatienceMs = 2000;  // as rdma-core's

Status prepare(CmId& id, const rdma_addrinfo& info, ibv_pd* pd, ibv_qp_init_attr* attributes) {
  if ((info.ai_flags & RAI_PASSIVE) != 0) {
    if (Status bound = bind_address(id, info.ai_src_addr); !bound) return bound;
    if (pd != nullptr) id.pd = pd;
    if (attributes == nullptr) return {};
    id.pair_of_requests = std::make_unique<ibv_qp_init_attr>(*attributes);
    id.pair_of_requests->qp_type = id.qp_type;
    return {};
  }
  if (Status done = resolve_addresses(id, info.ai_src_addr, info.ai_dst_addr); !done) return done;
  if (rdma_resolve_route(&id, kPatienceMs) != 0) return error_of_errno("rdma_resolve_route");
  if (attributes != nullptr) {
    attributes->qp_type = id.qp_type;
    if (rdma_create_qp(&id, pd, attributes) != 0) return error_of_errno("rdma_create_qp");
  }
  if (info.ai_connect_len != 0 && info.ai_connect != nullptr) {
    id.connect_data = std::make_unique<std::byte[]>(info.ai_connect_len);
    std::memcpy(id.connect_data.get(), info.ai_connect, info.ai_connect_len);
    id.connect_length = info.ai_connect_len;
  }
  return {};
}

Status create_endpoint(rdma_cm_id** id, const rdma_addrinfo& info, ibv_pd* pd,
                       ibv_qp_init_attr* attributes) {
  rdma_cm_id* made = nullptr;
  if (rdma_create_id(nullptr, &made, nullptr, static_cast<rdma_port_space>(info.ai_port_space)) !=
      0) {
    return error_of_errno("rdma_create_id");
  }
  if (info.ai_qp_type != 0) made->qp_type = static_cast<ibv_qp_type>(info.ai_qp_type);
  Status ready = prepare(CmId::of(made), info, pd, attributes);
  if (!ready) {
    rdma_destroy_ep(made);
    return ready;
  }
  *id = made;
  return {};
}

}  // namespace
}  // namespace weft::rdmacm

using namespace weft::rdmacm;

extern "C" {

int rdma_create_ep(rdma_cm_id** id, rdma_addrinfo* info, ibv_pd* pd, ibv_qp_init_attr* attributes) {
  if (id == nullptr || info == nullptr) return minus_one_with(EINVAL);
  return at_c_border([&] { return create_endpoint(id, *info, pd, attributes); });
}

void rdma_destroy_ep(rdma_cm_id* id) {
  if (id == nullptr) return;
  if (id->qp != nullptr) rdma_destroy_qp(id);
  if (id->srq != nullptr) rdma_destroy_srq(id);
  rdma_destroy_id(id);
}

}  // extern "C"
