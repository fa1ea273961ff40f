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

// Those that ibv_modify_qp(3) requires, and no others; IBV_QP_STATE is among them.
int mask_to_init(ibv_qp_type type);
int mask_to_rtr(ibv_qp_type type);
int mask_to_rts(ibv_qp_type type);

// Values for all of these, towards a peer with that GID. retry_cnt and rnr_retry are 7,
// max_rd_atomic and max_dest_rd_atomic 16.
ibv_qp_attr usual_attributes(const ibv_gid& peer);

// The address of a peer with that GID.
ibv_ah_attr address_of(const ibv_gid& peer);

}  // namespace weft::verbs_conformance
