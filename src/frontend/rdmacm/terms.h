// SPDX-License-Identifier: BSD-2-Clause
// What have both ends of a connection agreed on, that their queue pairs need?
#pragma once

#include <cstdint>

#include "abi.h"

namespace weft::rdmacm {

// The code of the Local ACK Timeout where the program sets none: the path has a lifetime of 0.27 s,
// as with Linux (CMA_IBOE_PACKET_LIFETIME + 1).
inline constexpr std::uint8_t kUsualAckTimeout = 17;
// The transport service type of a REQ that stands for an extended one, such as XRC.
inline constexpr std::uint8_t kExtendedTransport = 3;

// The transport service type of a REQ for queue pairs of that type.
inline std::uint8_t transport_of(ibv_qp_type type) {
  constexpr std::uint8_t kUnreliable = 1;
  if (type == IBV_QPT_XRC_RECV || type == IBV_QPT_XRC_SEND) return kExtendedTransport;
  return type == IBV_QPT_UC ? kUnreliable : 0;
}

inline constexpr std::uint8_t kHopLimit = 64;
inline constexpr std::uint16_t kPkey = 0xFFFF;  // the default partition
// Statuses of a SIDR_REP.
inline constexpr std::uint8_t kNoSuchService = 1;
inline constexpr std::uint8_t kRefused = 2;

// In the view of one end.
struct ConnectionTerms {
  std::uint32_t own_psn = 0;  // which the peer begins with
  std::uint32_t peer_psn = 0;
  std::uint32_t peer_qpn = 0;
  ibv_gid peer_gid{};
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint32_t flow_label = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
  std::uint8_t ack_timeout = 0;  // code of the Local ACK Timeout
};

}  // namespace weft::rdmacm
