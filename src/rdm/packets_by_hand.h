// SPDX-License-Identifier: BSD-2-Clause
// Packets that no engine has made: a test says what they contain and where they seem to come from.
#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include "roce/route.h"
#include "simulated_host.h"
#include "wire/cm_message.h"
#include "wire/icrc.h"
#include "wire/packet.h"

namespace weft::rdm::testing {

// Sends a packet with a valid ICRC.
inline void send_by_hand(Network& network, const os::SocketAddress& from,
                         const os::SocketAddress& to, const wire::Packet& packet,
                         std::span<const std::byte> payload) {
  Bytes bytes(wire::header_bytes(packet) + payload.size() + wire::kIcrcBytes);
  wire::write_headers(packet, payload.size(), bytes.data());
  std::ranges::copy(payload, bytes.begin() + static_cast<long>(wire::header_bytes(packet)));
  const roce::Path path{from, to, roce::route_between(from, to)};
  const auto covered = std::span(bytes).first(bytes.size() - wire::kIcrcBytes);
  wire::store_icrc(bytes.data() + covered.size(), wire::icrc(path.route, covered));
  network.send(path, bytes);
}

// The same of a management datagram.
inline void send_by_hand(Network& network, const os::SocketAddress& from,
                         const os::SocketAddress& to, std::uint64_t transaction,
                         const wire::CmMessage& message) {
  wire::Packet packet;
  packet.opcode = opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
  packet.destination = packet.source = wire::kCmQpn;
  packet.queue_key = wire::kCmQueueKey;
  send_by_hand(network, from, to, packet, wire::write_cm({0, transaction, 0, message}));
}

// The management datagram of a packet, if it has one.
inline std::optional<wire::CmMad> mad_in(const Bytes& bytes) {
  wire::Packet packet;
  if (wire::parse(bytes, packet) != wire::Malformed::kNone) return std::nullopt;
  if (packet.destination != wire::kCmQpn || packet.payload.size() < wire::kMadBytes) {
    return std::nullopt;
  }
  return wire::parse_cm(packet.payload.first(wire::kMadBytes));
}

}  // namespace weft::rdm::testing
