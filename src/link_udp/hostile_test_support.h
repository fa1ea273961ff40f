// SPDX-License-Identifier: BSD-2-Clause
// How do tests send malformed and hostile packets to an endpoint?
#pragma once

#include <optional>

#include "rdm/conn_message.h"
#include "rdm/message.h"
#include "roce/route.h"
#include "test_support.h"
#include "wire/packet.h"

namespace weft::udp::testing {

inline constexpr std::uint64_t kKey = 10;

// A peer that says what the test tells it to, by packets made by hand.
struct Stranger {
  explicit Stranger(bool trains = false)
      : socket(std::move(os::UdpSocket::bind(os::loopback(0), {.trains = trains})).value()) {}

  std::optional<os::UdpSocket> socket;
  os::UdpBatch batch{8};
  ConnRep rep;
  std::uint64_t station = 2;  // that it claims to be

  // Base header to padding.
  static Bytes packet(wire::Packet headers, std::span<const std::byte> payload) {
    const std::size_t size = wire::header_bytes(headers);
    Bytes bytes(size + payload.size() + wire::padding_of(payload.size()));
    wire::write_headers(headers, payload.size(), bytes.data());
    std::copy(payload.begin(), payload.end(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    return bytes;
  }
  static Bytes message(const ConnMessage& said) {
    wire::Packet headers;
    headers.opcode = opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
    headers.destination = headers.source = wire::kCmQpn;
    headers.queue_key = wire::kCmQueueKey;
    return packet(headers, write_conn_message(said));
  }
  // Headers of a packet from that port, of the flow that an endpoint has agreed upon.
  static wire::Packet headers_of(const ConnRep& rep, std::uint16_t port, wire::Operation operation,
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
  ConnReq req() const {
    ConnReq req;
    req.me = {1, station, roce::queue_pair_at(socket->address().port()), 3, 4, 1024, 100'000};
    req.name = socket->address();
    req.path_mtu = req.me.path_mtu;
    return req;
  }
  // What the endpoint says to this one, as greetings.
  std::vector<ConnMessage> hear() {
    std::vector<ConnMessage> heard;
    while (socket->receive(batch) == 0 && !batch.arrivals().empty()) {
      batch.for_each([&](const os::Datagram& datagram) {
        wire::Packet packet;
        if (wire::parse(datagram.bytes, packet) != wire::Malformed::kNone) return;
        if (packet.destination != wire::kCmQpn) return;
        if (const auto said = read_conn_message(packet.payload)) heard.push_back(*said);
      });
    }
    return heard;
  }
  bool agree(Peer& with) {
    send(with, message(req()));
    return until({&with}, [&] {
      for (const ConnMessage& said : hear()) {
        if (const auto* answer = std::get_if<ConnRep>(&said)) return rep = *answer, true;
      }
      return false;
    });
  }
  // Rejects each REQ to this one.
  void refuse(const Peer& peer) {
    for (const ConnMessage& said : hear()) {
      const auto* asked = std::get_if<ConnReq>(&said);
      if (asked == nullptr) continue;
      send(peer, message(ConnRej{ConnRej::Why::kUnwanted, asked->me.connection_id, 0}));
    }
  }
};

}  // namespace weft::udp::testing
