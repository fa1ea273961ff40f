// SPDX-License-Identifier: BSD-2-Clause
// To which process of this host does a message for queue pair 1 at port 4791 go?
#include "mad_route.h"

#include <array>
#include <type_traits>
#include <variant>

namespace weft::roce {
namespace {

// Service ids that begin with `bits`, as far as `mask` says; the lower 16 bits are the port.
struct ServiceRange {
  std::uint64_t bits;
  std::uint64_t mask;
  constexpr bool has(std::uint64_t service) const { return (service & mask) == bits; }
};
// Weft's own: "Weft" and 16 bits that say which.
constexpr ServiceRange kServicesOfWeft{0x5765'6674'0000'0000, 0xFFFF'FFFF'0000'0000};
constexpr std::array kServicesWithPorts{
    // The RDMA IP CM service: 0x0000'0000'01PP'pppp, any port space (IBTA annex A11).
    ServiceRange{0x0000'0000'0100'0000, 0xFFFF'FFFF'FF00'0000},
    kServicesOfWeft,
};

constexpr std::uint8_t kNoSuchService = 1;  // status of a SIDR_REP (IBTA 12.11.2)

template <class M>
constexpr bool kNamesService = std::is_same_v<M, wire::CmReq> || std::is_same_v<M, wire::CmSidrReq>;

}  // namespace

std::optional<wire::CmMad> read_mad(const wire::Packet& packet) {
  constexpr std::uint8_t kSendOnly =
      wire::opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
  const bool right = packet.opcode == kSendOnly && packet.destination == wire::kCmQpn &&
                     packet.queue_key == wire::kCmQueueKey &&
                     wire::pkeys_match(packet.pkey, wire::kDefaultPkey);
  const std::size_t length = packet.payload.size();
  if (!right || length < wire::kMadBytes || length > wire::kMadBytes + wire::kMaxBytesBehindMad) {
    return std::nullopt;
  }
  return wire::parse_cm(packet.payload.first(wire::kMadBytes));
}

bool is_request_of_weft(const wire::CmMad& mad) {
  const auto* req = std::get_if<wire::CmReq>(&mad.message);
  return req != nullptr && kServicesOfWeft.has(req->service);
}

std::optional<std::uint16_t> port_of_service(std::uint64_t service) {
  for (const ServiceRange& range : kServicesWithPorts) {
    if (range.has(service)) return static_cast<std::uint16_t>(service);
  }
  return std::nullopt;
}

std::optional<std::uint16_t> destination_port(const wire::CmMessage& message) {
  return std::visit(
      [](const auto& m) -> std::optional<std::uint16_t> {
        using M = std::decay_t<decltype(m)>;
        if constexpr (kNamesService<M>) {
          return port_of_service(m.service);
        } else if constexpr (std::is_same_v<M, wire::CmSidrRep>) {
          return port_of_id(m.request);
        } else {
          return port_of_id(m.remote_id);
        }
      },
      message);
}

std::optional<wire::CmMad> refusal_of(const wire::CmMad& mad) {
  wire::CmMad answer;
  answer.transaction = mad.transaction;
  if (const auto* req = std::get_if<wire::CmReq>(&mad.message)) {
    wire::CmRej rej;
    rej.remote_id = req->local_id;
    rej.reason = wire::CmReason::kInvalidService;
    answer.message = rej;
  } else if (const auto* resolve = std::get_if<wire::CmSidrReq>(&mad.message)) {
    wire::CmSidrRep rep;
    rep.request = resolve->request;
    rep.status = kNoSuchService;
    rep.service = resolve->service;
    answer.message = rep;
  } else if (const auto* end = std::get_if<wire::CmDreq>(&mad.message)) {
    wire::CmDrep drep;
    drep.local_id = end->remote_id;
    drep.remote_id = end->local_id;
    answer.message = drep;
  } else {
    return std::nullopt;
  }
  return answer;
}

}  // namespace weft::roce
