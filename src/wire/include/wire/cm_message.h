// SPDX-License-Identifier: BSD-2-Clause
// What do two connection managers say to each other? (IBTA 12.6 to 12.11)
//
// Each message is a management datagram (MAD) of 256 bytes, the payload of a packet to queue
// pair 1. Members have the names and units of the specification; lengths in bits that are not those
// of the type stand beside them. Values too large for their field lose their upper bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

namespace weft::wire {

inline constexpr std::size_t kMadBytes = 256;
// Between Weft's hosts so many bytes of private data may follow a MAD in its packet.
inline constexpr std::size_t kMaxBytesBehindMad = 256;
inline constexpr std::uint32_t kCmQpn = 1;
inline constexpr std::uint32_t kCmQueueKey = 0x8001'0000;

using Gid = std::array<std::byte, 16>;
template <std::size_t kBytes>
using PrivateData = std::array<std::byte, kBytes>;

// One path of a connection, as the requester sees it.
struct CmPath {
  std::uint16_t local_lid = 0;
  std::uint16_t remote_lid = 0;
  Gid local_gid{};
  Gid remote_gid{};
  std::uint32_t flow_label = 0;  // 20
  std::uint8_t packet_rate = 0;  // 6
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t service_level = 0;  // 4
  bool subnet_local = false;
  std::uint8_t local_ack_timeout = 0;  // 5
};

// Request for a connection.
struct CmReq {
  std::uint32_t local_id = 0;
  std::uint32_t vendor = 0;  // 24
  std::uint64_t service = 0;
  std::uint64_t ca_guid = 0;
  std::uint32_t queue_key = 0;
  std::uint32_t qpn = 0;  // 24
  std::uint8_t responder_resources = 0;
  std::uint32_t eecn = 0;  // 24
  std::uint8_t initiator_depth = 0;
  std::uint32_t remote_eecn = 0;             // 24
  std::uint8_t remote_response_timeout = 0;  // 5
  std::uint8_t transport = 0;                // 2: 0 RC, 1 UC, 2 RD, 3 as `extended_transport` says
  bool flow_control = false;
  std::uint32_t starting_psn = 0;           // 24: what the receiver must begin with
  std::uint8_t local_response_timeout = 0;  // 5
  std::uint8_t retry_count = 0;             // 3
  std::uint16_t pkey = 0;
  std::uint8_t path_mtu = 0;  // 4: 1 is 256 bytes, 5 is 4096
  bool rdc_exists = false;
  std::uint8_t rnr_retry = 0;       // 3
  std::uint8_t max_cm_retries = 0;  // 4
  bool shared_receive = false;
  std::uint8_t extended_transport = 0;  // 3: 1 XRC
  CmPath primary;
  CmPath alternate;  // all zero: none
  PrivateData<92> data{};
};

// The communication ids of the sender and of the addressee, with which most messages begin.
struct CmIds {
  std::uint32_t local_id = 0;
  std::uint32_t remote_id = 0;
};

// Message receipt acknowledgment: an answer will take a while.
struct CmMra : CmIds {
  std::uint8_t message = 0;          // 2: 0 REQ, 1 REP, 2 LAP
  std::uint8_t service_timeout = 0;  // 5
  PrivateData<222> data{};
};

// Why a request or a reply is rejected (IBTA 12.6.7.2).
enum class CmReason : std::uint16_t {
  kNoQueuePair = 1,
  kNoResources = 3,
  kTimeout = 4,
  kUnsupported = 5,
  kInvalidId = 6,
  kInvalidService = 8,
  kInvalidTransport = 9,
  kStale = 10,
  kInvalidMtu = 26,
  kConsumer = 28,
  kDuplicateId = 30,
  kVendorOption = 35,
};

// Rejection of a request or a reply.
struct CmRej : CmIds {
  std::uint8_t message = 0;      // 2: 0 REQ, 1 REP, 2 another or none
  std::uint8_t info_length = 0;  // 7
  CmReason reason{};
  std::array<std::byte, 72> info{};
  PrivateData<148> data{};
};

// Reply to a request.
struct CmRep : CmIds {
  std::uint32_t queue_key = 0;
  std::uint32_t qpn = 0;  // 24
  std::uint8_t vendor_high = 0;
  std::uint32_t eecn = 0;  // 24
  std::uint8_t vendor_middle = 0;
  std::uint32_t starting_psn = 0;  // 24
  std::uint8_t vendor_low = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t target_ack_delay = 0;   // 5
  std::uint8_t failover_accepted = 0;  // 2
  bool flow_control = false;
  std::uint8_t rnr_retry = 0;  // 3
  bool shared_receive = false;
  std::uint64_t ca_guid = 0;
  PrivateData<196> data{};
};

// Ready to use: the answer to a reply.
struct CmRtu : CmIds {
  PrivateData<224> data{};
};

// Request for the end of a connection.
struct CmDreq : CmIds {
  std::uint32_t remote_qpn = 0;  // 24
  PrivateData<220> data{};
};

// Reply to that, with the layout of an RTU.
struct CmDrep : CmRtu {};

// Which queue pair serves a service by datagrams?
struct CmSidrReq {
  std::uint32_t request = 0;
  std::uint16_t pkey = 0;
  std::uint64_t service = 0;
  PrivateData<216> data{};
};

// The answer to that.
struct CmSidrRep {
  std::uint32_t request = 0;
  std::uint8_t status = 0;  // 0 found, 1 no such service, 2 rejected, 3 no queue pair
  std::uint8_t info_length = 0;
  std::uint32_t qpn = 0;  // 24
  std::uint64_t service = 0;
  std::uint32_t queue_key = 0;
  std::array<std::byte, 72> info{};
  PrivateData<136> data{};
};

// Request for another path. RoCE does not use it, so that its path is not taken apart.
struct CmLap : CmIds {
  std::uint32_t remote_qpn = 0;       // 24
  std::uint8_t response_timeout = 0;  // 5
  std::array<std::byte, 44> path{};
  PrivateData<168> data{};
};

// The answer to that.
struct CmApr : CmIds {
  std::uint8_t info_length = 0;
  std::uint8_t status = 0;  // 0 loaded; 1 an invalid ID; 2 not supported ...
  std::array<std::byte, 72> info{};
  PrivateData<148> data{};
};

using CmMessage = std::variant<CmReq, CmMra, CmRej, CmRep, CmRtu, CmDreq, CmDrep, CmSidrReq,
                               CmSidrRep, CmLap, CmApr>;

// A management datagram of the connection manager.
struct CmMad {
  std::uint16_t status = 0;
  std::uint64_t transaction = 0;
  std::uint32_t modifier = 0;
  CmMessage message;
};

// Takes a payload apart; nothing when it is no message of the connection manager, of whatever kind.
std::optional<CmMad> parse_cm(std::span<const std::byte> payload);
// The transaction id of a REQ or SIDR_REQ, of which nothing else is read; nothing for all other
// payloads.
std::optional<std::uint64_t> transaction_of_request(std::span<const std::byte> payload);
// Writes all of it.
std::array<std::byte, kMadBytes> write_cm(const CmMad& mad);

// What the RDMA IP CM service puts before a program's own data in REQ and SIDR_REQ (IBTA annex
// A11).
struct CmIpHeader {
  static constexpr std::size_t kBytes = 36;
  std::uint8_t version = 0;     // of this header, 4
  std::uint8_t ip_version = 4;  // 4
  std::uint16_t source_port = 0;
  Gid source{};  // IPv4: in the last four bytes
  Gid destination{};
};

// Reads and writes it at the beginning of private data, which are long enough.
CmIpHeader parse_ip_header(std::span<const std::byte, CmIpHeader::kBytes> data);
// The other direction.
void write_ip_header(const CmIpHeader& header, std::span<std::byte, CmIpHeader::kBytes> data);

// Port spaces of rdma_cm, and the service that a port of one stands for.
inline constexpr std::uint16_t kPortSpaceTcp = 0x0106;
inline constexpr std::uint16_t kPortSpaceUdp = 0x0111;
constexpr std::uint64_t service_of(std::uint16_t space, std::uint16_t port) {
  return std::uint64_t{0x0100'0000} | std::uint64_t{space} << 16 | port;
}

}  // namespace weft::wire
