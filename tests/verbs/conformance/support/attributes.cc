// SPDX-License-Identifier: BSD-2-Clause
// Which attributes does each transition of a queue pair need?
#include "attributes.h"

namespace weft::verbs_conformance {
namespace {

bool has_initiator(ibv_qp_type type) { return type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND; }
bool has_target(ibv_qp_type type) { return type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV; }

int mask_to_init(ibv_qp_type type) {
  return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
         (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
}

int mask_to_rtr(ibv_qp_type type) {
  if (type == IBV_QPT_UD) return IBV_QP_STATE;
  const int connected =
      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  return has_target(type) ? connected | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
                          : connected;
}

int mask_to_rts(ibv_qp_type type) {
  const int any = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (type == IBV_QPT_XRC_RECV) return any | IBV_QP_TIMEOUT;
  if (!has_initiator(type)) return any;
  return any | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
}

}  // namespace

int mask_to(ibv_qp_state state, ibv_qp_type type) {
  switch (static_cast<int>(state)) {
    case IBV_QPS_INIT:
      return mask_to_init(type);
    case IBV_QPS_RTR:
      return mask_to_rtr(type);
    case IBV_QPS_RTS:
      return mask_to_rts(type);
    default:
      return IBV_QP_STATE;
  }
}

int move_to(ibv_qp* qp, ibv_qp_state state, const ibv_qp_attr& with) {
  ibv_qp_attr attributes = with;
  attributes.qp_state = state;
  return ibv_modify_qp(qp, &attributes, mask_to(state, qp->qp_type));
}

ibv_qp_init_attr reliable_setup(ibv_cq* queue, const ibv_qp_cap& capacities) {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = queue;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap = capacities;
  return wanted;
}

ibv_ah_attr address_of(const ibv_gid& peer) {
  ibv_ah_attr address{};
  address.is_global = 1;
  address.grh.dgid = peer;
  address.grh.sgid_index = 0;
  address.grh.hop_limit = 64;
  address.port_num = 1;
  return address;
}

ibv_qp_attr usual_attributes(const ibv_gid& peer) {
  ibv_qp_attr attributes{};
  attributes.port_num = 1;
  attributes.qkey = kQueueKey;
  attributes.qp_access_flags = kRemoteRights;
  attributes.path_mtu = IBV_MTU_1024;
  attributes.ah_attr = address_of(peer);
  attributes.rq_psn = attributes.sq_psn = 0xABCDEF;
  attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 16;
  attributes.min_rnr_timer = 1;
  attributes.timeout = 14;
  attributes.retry_cnt = attributes.rnr_retry = 7;
  return attributes;
}

}  // namespace weft::verbs_conformance
