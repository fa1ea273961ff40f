// SPDX-License-Identifier: BSD-2-Clause
// How do tests make and read the messages and packets of a flow by hand?
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "bytes_test_support.h"
#include "os/loopback_support.h"
#include "rdm/flow_message.h"
#include "rdm/message.h"
#include "roce/route.h"
#include "wire/cm_message.h"
#include "wire/icrc.h"
#include "wire/packet.h"

namespace weft::rdm::testing {

using roce::testing::Bytes;

// Messages of the connection manager about flows.
struct ReqMad : FlowRequest {
  std::uint32_t local_id = 1;
  std::uint64_t transaction = 0;
};
struct RepMad : FlowReply {
  std::uint32_t local_id = 1;
  std::uint32_t remote_id = 0;
  std::uint64_t transaction = 0;
};
struct RtuMad {
  std::uint32_t local_id = 1;
  std::uint32_t remote_id = 0;
  std::uint64_t transaction = 0;
};
struct RejMad {
  wire::CmReason reason = wire::CmReason::kConsumer;
  std::uint32_t remote_id = 0;
  std::uint64_t transaction = 0;
  FlowEnd end = {};
};
struct DreqMad {
  std::uint32_t local_id = 1;
  std::uint32_t remote_id = 0;
  std::uint64_t transaction = 0;
  std::uint32_t queue_pair = 0;  // of the receiver
  FlowEnd end = {};
};
struct LapMad {
  std::uint32_t local_id = 1;
  std::uint32_t remote_id = 0;
  std::uint64_t transaction = 0;
};
using FlowMad = std::variant<ReqMad, RepMad, RtuMad, RejMad, DreqMad, LapMad>;

// The payloads of packets to queue pair 1 that say that, and back; nothing for other messages.
inline Bytes payload_of(std::uint64_t transaction, const wire::CmMessage& message) {
  const auto mad = wire::write_cm({0, transaction, 0, message});
  return {mad.begin(), mad.end()};
}
inline Bytes payload_of(const ReqMad& req) {
  wire::CmReq mad = write_request(req);
  mad.local_id = req.local_id;
  return payload_of(req.transaction, mad);
}
inline Bytes payload_of(const RepMad& rep) {
  wire::CmRep mad = write_reply(rep);
  mad.local_id = rep.local_id;
  mad.remote_id = rep.remote_id;
  return payload_of(rep.transaction, mad);
}
inline Bytes payload_of(const RtuMad& rtu) {
  return payload_of(rtu.transaction, wire::CmRtu{rtu.local_id, rtu.remote_id, {}});
}
inline Bytes payload_of(const RejMad& rej) {
  wire::CmRej mad;
  mad.remote_id = rej.remote_id;
  mad.reason = rej.reason;
  std::ranges::copy(write_end(rej.end), mad.data.begin());
  return payload_of(rej.transaction, mad);
}
inline Bytes payload_of(const DreqMad& dreq) {
  wire::CmDreq mad{dreq.local_id, dreq.remote_id, dreq.queue_pair, {}};
  std::ranges::copy(write_end(dreq.end), mad.data.begin());
  return payload_of(dreq.transaction, mad);
}
inline Bytes payload_of(const LapMad& probe) {
  wire::CmLap mad;
  mad.local_id = probe.local_id;
  mad.remote_id = probe.remote_id;
  return payload_of(probe.transaction, mad);
}
inline Bytes payload_of(const FlowMad& message) {
  return std::visit([](const auto& each) { return payload_of(each); }, message);
}
// A peer that lives answers a probe: "not supported".
inline Bytes answer_of(const LapMad& probe) {
  const wire::CmApr apr{probe.remote_id, probe.local_id, 0, 2, {}, {}};
  return payload_of(probe.transaction, apr);
}

inline std::optional<FlowMad> read_message(const wire::CmMad& mad) {
  const wire::CmMessage& said = mad.message;
  if (const auto* req = std::get_if<wire::CmReq>(&said)) {
    const auto request = read_request(*req);
    if (!request) return std::nullopt;
    return ReqMad{*request, req->local_id, mad.transaction};
  }
  if (const auto* rep = std::get_if<wire::CmRep>(&said)) {
    const auto reply = read_reply(*rep);
    if (!reply) return std::nullopt;
    return RepMad{*reply, rep->local_id, rep->remote_id, mad.transaction};
  }
  if (const auto* rtu = std::get_if<wire::CmRtu>(&said))
    return RtuMad{rtu->local_id, rtu->remote_id, mad.transaction};
  if (const auto* rej = std::get_if<wire::CmRej>(&said))
    return RejMad{rej->reason, rej->remote_id, mad.transaction, read_end(rej->data)};
  if (const auto* dreq = std::get_if<wire::CmDreq>(&said)) {
    return DreqMad{dreq->local_id, dreq->remote_id, mad.transaction, dreq->remote_qpn,
                   read_end(dreq->data)};
  }
  if (const auto* lap = std::get_if<wire::CmLap>(&said))
    return LapMad{lap->local_id, lap->remote_id, mad.transaction};
  return std::nullopt;
}

inline std::optional<FlowMad> read_message(std::span<const std::byte> payload) {
  if (payload.size() < wire::kMadBytes) return std::nullopt;
  const auto mad = wire::parse_cm(payload.first(wire::kMadBytes));
  return mad ? read_message(*mad) : std::nullopt;
}

// Makes the packets of a peer at an address, with which an endpoint may have agreed upon a flow.
struct FlowHand {
  os::SocketAddress address;
  RepMad rep;                     // the endpoint's
  std::uint64_t endpoint_id = 2;  // that the peer claims to be

  // Base header to padding.
  static Bytes packet(wire::Packet headers, std::span<const std::byte> payload) {
    const std::size_t size = wire::header_bytes(headers);
    Bytes bytes(size + payload.size() + wire::padding_of(payload.size()));
    wire::write_headers(headers, payload.size(), bytes.data());
    std::copy(payload.begin(), payload.end(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    return bytes;
  }
  static Bytes message(const FlowMad& said) { return message(payload_of(said)); }
  static Bytes message(const Bytes& payload) {
    wire::Packet headers;
    headers.opcode = opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
    headers.destination = headers.source = wire::kCmQpn;
    headers.queue_key = wire::kCmQueueKey;
    return packet(headers, payload);
  }
  // The packet with its ICRC.
  static Bytes sealed(Bytes bytes, const os::SocketAddress& from, const os::SocketAddress& to) {
    const auto crc = wire::icrc(roce::route_between(from, to), bytes);
    bytes.resize(bytes.size() + wire::kIcrcBytes);
    wire::store_icrc(bytes.data() + bytes.size() - wire::kIcrcBytes, crc);
    return bytes;
  }
  // Headers of a packet of the flow.
  wire::Packet headers(wire::Operation operation, std::uint32_t number) const {
    wire::Packet headers;
    headers.opcode = opcode_of(wire::Transport::kReliableDatagram, operation);
    headers.destination = rep.me.queue_pair;
    headers.end_to_end_context = rep.me.context;
    headers.queue_key = rep.me.queue_key;
    headers.source = roce::queue_pair_at(address.port());
    headers.psn = rep.first.after(static_cast<std::int32_t>(number));
    return headers;
  }
  ReqMad req() const {
    ReqMad req;
    req.me = {endpoint_id, roce::queue_pair_at(address.port()), 3, 4, 1024, 100'000};
    req.name = address;
    req.transaction = 0x1234'5678'9ABC'DEF0;
    return req;
  }
  // The peer's answer to a REQ.
  RepMad reply_to(const ReqMad& asked, Psn first = {}) const {
    RepMad reply;
    reply.me = req().me;
    reply.first = first;
    reply.remote_id = asked.local_id;
    reply.transaction = asked.transaction;
    return reply;
  }
  // The end of the flow.
  DreqMad goodbye(FlowEnd end = {}) const {
    return {req().local_id, rep.local_id, rep.transaction, rep.me.queue_pair, end};
  }
};

}  // namespace weft::rdm::testing
