// SPDX-License-Identifier: BSD-2-Clause
// How do tests send malformed and hostile packets to an endpoint?
#pragma once

#include <algorithm>
#include <optional>
#include <variant>

#include "rdm/flow_message.h"
#include "rdm/message.h"
#include "roce/route.h"
#include "test_support.h"
#include "wire/cm_message.h"
#include "wire/packet.h"

namespace weft::udp::testing {

inline constexpr std::uint64_t kKey = 10;

// Messages of the connection manager about flows, as tests make and read them by hand.
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

inline std::optional<FlowMad> read_message(std::span<const std::byte> payload) {
  if (payload.size() < wire::kMadBytes) return std::nullopt;
  const auto mad = wire::parse_cm(payload.first(wire::kMadBytes));
  if (!mad) return std::nullopt;
  const wire::CmMessage& said = mad->message;
  if (const auto* req = std::get_if<wire::CmReq>(&said)) {
    const auto request = read_request(*req);
    if (!request) return std::nullopt;
    return ReqMad{*request, req->local_id, mad->transaction};
  }
  if (const auto* rep = std::get_if<wire::CmRep>(&said)) {
    const auto reply = read_reply(*rep);
    if (!reply) return std::nullopt;
    return RepMad{*reply, rep->local_id, rep->remote_id, mad->transaction};
  }
  if (const auto* rtu = std::get_if<wire::CmRtu>(&said))
    return RtuMad{rtu->local_id, rtu->remote_id, mad->transaction};
  if (const auto* rej = std::get_if<wire::CmRej>(&said))
    return RejMad{rej->reason, rej->remote_id, mad->transaction, read_end(rej->data)};
  if (const auto* dreq = std::get_if<wire::CmDreq>(&said)) {
    return DreqMad{dreq->local_id, dreq->remote_id, mad->transaction, dreq->remote_qpn,
                   read_end(dreq->data)};
  }
  if (const auto* lap = std::get_if<wire::CmLap>(&said))
    return LapMad{lap->local_id, lap->remote_id, mad->transaction};
  return std::nullopt;
}

// A peer that says what the test tells it to, by packets made by hand.
struct Stranger {
  explicit Stranger(bool trains = false)
      : socket(std::move(os::UdpSocket::bind(os::loopback(0), {.trains = trains})).value()) {}

  std::optional<os::UdpSocket> socket;
  os::UdpBatch batch{8};
  RepMad rep;
  std::uint64_t station = 2;  // that it claims to be

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
  // Headers of a packet from that port, of the flow that an endpoint has agreed upon.
  static wire::Packet headers_of(const RepMad& rep, std::uint16_t port, wire::Operation operation,
                                 std::uint32_t number) {
    wire::Packet headers;
    headers.opcode = opcode_of(wire::Transport::kReliableDatagram, operation);
    headers.destination = rep.me.queue_pair;
    headers.end_to_end_context = rep.me.context;
    headers.queue_key = rep.me.queue_key;
    headers.source = roce::queue_pair_at(port);
    headers.psn = rep.first.after(static_cast<std::int32_t>(number));
    return headers;
  }
  // The packet with its ICRC.
  static Bytes sealed(Bytes bytes, const os::SocketAddress& from, const os::SocketAddress& to) {
    const auto crc = wire::icrc(roce::route_between(from, to), bytes);
    bytes.resize(bytes.size() + wire::kIcrcBytes);
    wire::store_icrc(bytes.data() + bytes.size() - wire::kIcrcBytes, crc);
    return bytes;
  }
  // A message that asks for the sum of `length` bytes of zero operands, to be fetched.
  static Bytes fetch_sum(std::uint32_t exchange, std::size_t length) {
    const RemoteRange range{0, length, RegionKey{kKey}};
    MessageHeader header;
    header.kind = MessageKind::kAtomic;
    header.action = {AtomicForm::kFetch, AtomicOp::kSum, AtomicType::kUint64};
    header.exchange = exchange;
    header.tag = 1;
    header.length = length;
    Bytes bytes(kMessageHeader + kRange + length);
    write_header(header, bytes.data());
    write_ranges({&range, 1}, bytes.data() + kMessageHeader);
    return bytes;
  }
  // A packet of the flow that the endpoint has agreed upon.
  Bytes of_flow(wire::Operation operation, std::uint32_t number,
                std::span<const std::byte> payload) {
    wire::Packet headers = headers_of(rep, socket->address().port(), operation, number);
    headers.ack_request = true;
    headers.reth = {0, static_cast<std::uint32_t>(kKey), 100};
    headers.atomic = {0, static_cast<std::uint32_t>(kKey), 1, 0};
    return packet(headers, payload);
  }
  Bytes message(std::uint32_t number, MessageHeader header, std::size_t length) {
    Bytes bytes(kMessageHeader + length);
    header.length = length;
    write_header(header, bytes.data());
    return of_flow(wire::Operation::kSendOnly, number, bytes);
  }
  void send_raw(const Peer& to, const Bytes& bytes) {
    socket->send(to.address, {}, bytes, bytes.size());
  }
  void send(const Peer& to, Bytes bytes) {
    send_raw(to, sealed(std::move(bytes), socket->address(), to.address));
  }
  ReqMad req() const {
    ReqMad req;
    req.me = {station, roce::queue_pair_at(socket->address().port()), 3, 4, 1024, 100'000};
    req.name = socket->address();
    req.transaction = 0x1234'5678'9ABC'DEF0;
    return req;
  }
  // What this one answers to a REQ.
  RepMad reply_to(const ReqMad& asked, Psn first = {}) const {
    RepMad reply;
    reply.me = req().me;
    reply.first = first;
    reply.remote_id = asked.local_id;
    reply.transaction = asked.transaction;
    return reply;
  }
  // The end of the flow that the endpoint has agreed upon.
  DreqMad goodbye(FlowEnd end = {}) const {
    return {req().local_id, rep.local_id, rep.transaction, rep.me.queue_pair, end};
  }
  // The messages that the endpoint sends to this one.
  std::vector<FlowMad> hear() {
    std::vector<FlowMad> heard;
    while (socket->receive(batch) == 0 && !batch.arrivals().empty()) {
      batch.for_each([&](const os::Datagram& datagram) {
        wire::Packet packet;
        if (wire::parse(datagram.bytes, packet) != wire::Malformed::kNone) return;
        if (packet.destination != wire::kCmQpn) return;
        if (const auto said = read_message(packet.payload)) heard.push_back(*said);
      });
    }
    return heard;
  }
  // The last message of that kind among these.
  template <class Message>
  static std::optional<Message> last(const std::vector<FlowMad>& heard) {
    std::optional<Message> found;
    for (const FlowMad& said : heard) {
      if (const auto* message = std::get_if<Message>(&said)) found = *message;
    }
    return found;
  }
  // Repeats its REQ, as requesters do.
  bool agree(Peer& with) {
    const Bytes asked = message(req());
    auto next = std::chrono::steady_clock::now();
    return until({&with}, [&] {
      if (std::chrono::steady_clock::now() >= next) {
        send(with, asked);
        next += std::chrono::milliseconds(50);
      }
      const auto answer = last<RepMad>(hear());
      if (!answer) return false;
      rep = *answer;
      send(with, message(RtuMad{answer->remote_id, answer->local_id, answer->transaction}));
      with.poll();
      return true;
    });
  }
  // Rejects each REQ to this one.
  void refuse(Peer& peer) {
    for (const FlowMad& said : hear()) {
      const auto* asked = std::get_if<ReqMad>(&said);
      if (asked == nullptr) continue;
      send(peer, message(RejMad{
                     wire::CmReason::kConsumer, asked->local_id, asked->transaction, {{}, true}}));
    }
  }
};

}  // namespace weft::udp::testing
