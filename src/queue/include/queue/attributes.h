// SPDX-License-Identifier: BSD-2-Clause
// What are the types, states and attributes of queue pairs? (ibv_create_qp(3), ibv_modify_qp(3))
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/psn.h"
#include "base/types.h"
#include "os/socket_address.h"

namespace weft::queue {

// The transport service. The extended reliable connection has a type for either end (annex A14).
enum class QpType : std::uint8_t { kRc, kUc, kUd, kXrcSend, kXrcReceive };

// Where a queue pair is in its life (IBTA 10.3.1). The numbers are those of enum ibv_qp_state,
// which the verbs front end asserts, as it does of all numbers in this file.
enum class QpState : std::uint8_t {
  kReset = 0,
  kInit = 1,
  kReadyToReceive = 2,
  kReadyToSend = 3,
  kSendQueueDrained = 4,
  kSendQueueError = 5,
  kError = 6,
};

// Names attributes, as bits of one mask (enum ibv_qp_attr_mask).
enum Attribute : std::uint32_t {
  kAttributeState = 1u << 0,
  kAttributeCurrentState = 1u << 1,
  kAttributeDrainedNotice = 1u << 2,
  kAttributeAccess = 1u << 3,
  kAttributePkeyIndex = 1u << 4,
  kAttributePort = 1u << 5,
  kAttributeQueueKey = 1u << 6,
  kAttributeAddress = 1u << 7,
  kAttributePathMtu = 1u << 8,
  kAttributeTimeout = 1u << 9,
  kAttributeRetries = 1u << 10,
  kAttributeRnrRetries = 1u << 11,
  kAttributeReceivePsn = 1u << 12,
  kAttributeMaxReads = 1u << 13,
  kAttributeAlternatePath = 1u << 14,
  kAttributeRnrTimer = 1u << 15,
  kAttributeSendPsn = 1u << 16,
  kAttributeMaxReadsOfPeer = 1u << 17,
  kAttributePathMigration = 1u << 18,
  kAttributeCapacities = 1u << 19,
  kAttributeDestination = 1u << 20,
  kAttributeRateLimit = 1u << 25,
};

// Where packets go, and by which of the local addresses (struct ibv_ah_attr).
struct QpAddress {
  os::SocketAddress local;   // that of the source GID; port 0
  os::SocketAddress remote;  // that of the destination GID; port 0
  std::uint32_t flow_label = 0;
  std::uint8_t source_index = 0;  // of the GID
  std::uint8_t hop_limit = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t service_level = 0;
  std::uint8_t port = 1;
  std::uint16_t lid = 0;
  std::uint8_t path_bits = 0;
  std::uint8_t static_rate = 0;
};

// All attributes that ibv_modify_qp(3) sets and ibv_query_qp(3) returns, but the capacities.
struct QpAttributes {
  QpState state = QpState::kReset;
  QpState current_state = QpState::kReset;
  Access access =
      Access::kNone;  // what the peer may need: kRemoteRead, kRemoteWrite, kRemoteAtomic
  std::uint16_t pkey_index = 0;
  std::uint8_t port = 0;
  std::uint32_t queue_key = 0;
  QpAddress address;
  std::size_t path_mtu = 0;  // bytes: 256, 512, 1024, 2048 or 4096
  std::uint32_t destination = 0;
  Psn receive_psn;
  Psn send_psn;
  std::uint8_t max_reads = 0;          // as initiator (max_rd_atomic)
  std::uint8_t max_reads_of_peer = 0;  // as target (max_dest_rd_atomic)
  std::uint8_t rnr_timer = 0;          // code of IBTA table 45
  std::uint8_t timeout = 0;            // code of IBTA 9.7.6.1.3; 0: none
  std::uint8_t retries = 0;
  std::uint8_t rnr_retries = 0;
  bool drained_notice = false;
};

// Capacities of the queues (struct ibv_qp_cap).
struct QpCapacities {
  std::uint32_t sends = 0;         // work requests that the send queue holds
  std::uint32_t receives = 0;      // the same of the receive queue
  std::uint32_t send_sges = 0;     // scatter-gather entries of a send request
  std::uint32_t receive_sges = 0;  // the same of a receive request
  std::uint32_t inline_bytes = 0;  // of a send request
};

// Limits of the device.
inline constexpr std::uint32_t kMaxWorkRequests = 16'384;
inline constexpr std::uint32_t kMaxSges = 16;
inline constexpr std::uint32_t kMaxInline = 512;
inline constexpr std::uint32_t kLeastInline = 64;  // is granted whatever was asked for
inline constexpr std::uint32_t kMaxCompletions = 1 << 20;
inline constexpr std::uint8_t kMaxReads = 128;  // reads and atomic operations of a queue pair

// The bytes in front of a received datagram: a global routing header (IBTA 11.4.2.1).
inline constexpr std::size_t kGrhBytes = 40;

}  // namespace weft::queue
