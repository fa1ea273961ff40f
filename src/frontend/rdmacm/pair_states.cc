// SPDX-License-Identifier: BSD-2-Clause
// How does the queue pair of an id go through its states?
#include "pair_states.h"

#include "boundary.h"
#include "cm_space.h"

namespace weft::rdmacm {
namespace {

bool has_terms(const CmId& id) {
  switch (id.state) {
    case IdState::kResponded:
    case IdState::kConnected:
    case IdState::kRequested:
    case IdState::kAccepting:
      return true;
    case IdState::kIdle:
    case IdState::kBound:
    case IdState::kAddressResolved:
    case IdState::kRouteResolved:
    case IdState::kConnecting:
    case IdState::kListening:
    case IdState::kLeft:
    case IdState::kEnded:
      return false;
  }
  return false;
}

void set_access(const CmId& id, ibv_qp_attr& attributes, int& mask) {
  attributes.pkey_index = 0;
  attributes.port_num = kPort;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  if (id.terms.responder_resources != 0) {
    attributes.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  }
  mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
}

void set_peer(const CmId& id, const ConnectionTerms& terms, ibv_qp_attr& attributes, int& mask) {
  attributes.ah_attr = id.address_of_peer();
  attributes.path_mtu = terms.mtu;
  attributes.dest_qp_num = terms.peer_qpn;
  attributes.rq_psn = terms.own_psn;
  mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (id.qp_type == IBV_QPT_RC || id.qp_type == IBV_QPT_XRC_RECV) {
    attributes.max_dest_rd_atomic = terms.responder_resources;
    attributes.min_rnr_timer = 0;  // 655 ms, as with Linux
    mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  }
}

void set_sending(const CmId& id, const ConnectionTerms& terms, ibv_qp_attr& attributes, int& mask) {
  attributes.sq_psn = terms.peer_psn;
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (id.qp_type == IBV_QPT_UC) return;
  std::uint8_t timeout = terms.ack_timeout != 0 ? terms.ack_timeout : kUsualAckTimeout;
  if (id.options.ack_timeout != 0) timeout = id.options.ack_timeout;
  attributes.timeout = timeout;
  mask |= IBV_QP_TIMEOUT;
  if (id.qp_type == IBV_QPT_XRC_RECV) return;
  attributes.retry_cnt = terms.retry_count;
  attributes.rnr_retry = terms.rnr_retry_count;
  attributes.max_rd_atomic = terms.initiator_depth;
  mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
}

Status modify(ibv_qp& pair, ibv_qp_attr& attributes, int mask) {
  return status_of(ibv_modify_qp(&pair, &attributes, mask), "ibv_modify_qp");
}

// To that state.
Status move_pair(CmId& id, ibv_qp& pair, ibv_qp_state state) {
  ibv_qp_attr attributes{};
  attributes.qp_state = state;
  int mask = 0;
  if (Status known = attributes_for(id, attributes, mask); !known) return known;
  return modify(pair, attributes, mask);
}

}  // namespace

Status attributes_for(CmId& id, ibv_qp_attr& attributes, int& mask) {
  const MutexLock guard(id.space().lock());
  if (id.verbs == nullptr) return Error{EINVAL, "the id is bound to no device"};
  if (attributes.qp_state == IBV_QPS_INIT) {
    if (id.has_datagrams()) {
      attributes.pkey_index = 0;
      attributes.port_num = kPort;
      attributes.qkey = RDMA_UDP_QKEY;
      mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    } else {
      set_access(id, attributes, mask);
    }
    return {};
  }
  if (id.has_datagrams() || !has_terms(id)) return Error{EINVAL, "the id has no connection"};
  if (attributes.qp_state == IBV_QPS_RTR) {
    set_peer(id, id.terms, attributes, mask);
  } else if (attributes.qp_state == IBV_QPS_RTS) {
    set_sending(id, id.terms, attributes, mask);
  } else {
    return Error{EINVAL, "no state of a connection"};
  }
  return {};
}

// INIT once more: the accesses that the connection allows are known by now.
Status connect_pair(CmId& id) {
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    if (Status moved = move_pair(id, *id.qp, state); !moved) {
      end_pair(id);
      return moved;
    }
  }
  return {};
}

Status begin(CmId& id, ibv_qp& pair) {
  if (Status done = move_pair(id, pair, IBV_QPS_INIT); !done || !id.has_datagrams()) return done;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  if (Status done = modify(pair, attributes, IBV_QP_STATE); !done) return done;
  attributes.qp_state = IBV_QPS_RTS;
  return modify(pair, attributes, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

void end_pair(CmId& id) {
  if (id.qp == nullptr) return;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(id.qp, &attributes, IBV_QP_STATE);
}

}  // namespace weft::rdmacm

extern "C" int rdma_init_qp_attr(rdma_cm_id* id, ibv_qp_attr* attributes, int* mask) {
  using namespace weft::rdmacm;
  if (id == nullptr || attributes == nullptr || mask == nullptr) return minus_one_with(EINVAL);
  return at_c_border([&] { return attributes_for(CmId::of(id), *attributes, *mask); });
}
