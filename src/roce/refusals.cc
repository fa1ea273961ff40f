// SPDX-License-Identifier: BSD-2-Clause
// How is the sender of a message told that no process of this host is concerned, and how often?
#include "roce/refusals.h"

#include <algorithm>

#include "roce/route.h"
#include "wire/icrc.h"

namespace weft::roce {

std::span<const std::byte> Refusals::write(const wire::CmMad& answer, const os::SocketAddress& from,
                                           const os::SocketAddress& to, std::uint32_t qpn) {
  wire::Packet headers;
  headers.opcode =
      wire::opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
  headers.destination = qpn;
  headers.psn = psn_;
  headers.queue_key = wire::kCmQueueKey;
  headers.source = wire::kCmQpn;
  psn_ = psn_.after(1);
  wire::write_headers(headers, wire::kMadBytes, packet_.data());
  std::ranges::copy(wire::write_cm(answer), packet_.data() + wire::header_bytes(headers));
  const std::span<const std::byte> covered(packet_.data(), kBytes - wire::kIcrcBytes);
  wire::store_icrc(packet_.data() + covered.size(), wire::icrc(route_between(from, to), covered));
  return packet_;
}

}  // namespace weft::roce
