// SPDX-License-Identifier: BSD-2-Clause
// Between which two endpoints do packets go, and in which file are they written down?
#include "ends.h"

#include <array>
#include <cstring>

#include "roce/route.h"

namespace weft::capture {

void record(const Ends& ends, bool sent, std::span<std::byte> bytes, std::size_t length) {
  const End& from = sent ? ends.mine : ends.peers;
  const End& to = sent ? ends.peers : ends.mine;
  const wire::Route route = roce::route_between(from.address, to.address);
  wire::store_icrc(bytes.data() + length, wire::icrc(route, bytes.first(length)));
  const auto direction = sent ? wire::CaptureDirection::kSent : wire::CaptureDirection::kReceived;
  ends.tap.packet(direction, route, {}, bytes.first(length + wire::kIcrcBytes), {});
}

void record_datagram(Ends& ends, bool sent, wire::Packet packet,
                     std::span<const std::byte> payload) {
  std::array<std::byte, wire::kMaxHeaderBytes + wire::kMaxPathMtu + wire::kIcrcBytes> bytes{};
  if (payload.size() > wire::kMaxPathMtu) return;
  Psn& next = (sent ? ends.mine : ends.peers).datagram;
  packet.psn = next;
  next = next.after(1);
  const std::size_t headers = wire::header_bytes(packet);
  wire::write_headers(packet, payload.size(), bytes.data());
  if (!payload.empty()) std::memcpy(bytes.data() + headers, payload.data(), payload.size());
  record(ends, sent, bytes, headers + payload.size() + wire::padding_of(payload.size()));
}

}  // namespace weft::capture
