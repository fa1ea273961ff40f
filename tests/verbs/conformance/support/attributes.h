// SPDX-License-Identifier: BSD-2-Clause
// Which attributes does each transition of a queue pair need? (ibv_modify_qp(3))
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace weft::verbs_conformance {

inline constexpr std::uint32_t kQueueKey = 0x1234;
inline constexpr unsigned kRemoteRights =
    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
inline constexpr unsigned kAllRights = IBV_ACCESS_LOCAL_WRITE | kRemoteRights;

// The attributes that ibv_modify_qp(3) requires for the step to that state, and no others;
// IBV_QP_STATE is among them.
int mask_to(ibv_qp_state state, ibv_qp_type type);

// Takes that step with the required ones of these values: an errno, or 0.
int move_to(ibv_qp* qp, ibv_qp_state state, const ibv_qp_attr& with = {});

// A reliable connection that reports to one queue.
ibv_qp_init_attr reliable_setup(ibv_cq* queue, const ibv_qp_cap& capacities);

// Values for all steps, towards a peer with that GID. retry_cnt and rnr_retry are 7,
// max_rd_atomic and max_dest_rd_atomic 16.
ibv_qp_attr usual_attributes(const ibv_gid& peer);

// The address of a peer with that GID.
ibv_ah_attr address_of(const ibv_gid& peer);

}  // namespace weft::verbs_conformance
