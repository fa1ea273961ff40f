// SPDX-License-Identifier: BSD-2-Clause
// How is the sender of a message told that no process of this host is concerned, and how often?
#include "roce/refusals.h"

#include "roce/route.h"
#include "wire/icrc.h"

namespace weft::roce {

std::span<const std::byte> Refusals::write(const wire::CmMad& answer, const os::SocketAddress& from,
                                           const os::SocketAddress& to, std::uint32_t qpn) {
  auto mad = wire::write_cm(answer);
  const LocalRange bytes{mad.data(), mad.size()};
  static_cast<void>(
      writer_.write({.source = wire::kCmQpn, .destination = qpn, .queue_key = wire::kCmQueueKey},
                    {&bytes, 1}, mad.size(), packet_));
  const std::span<const std::byte> covered(packet_.data(), kBytes - wire::kIcrcBytes);
  wire::store_icrc(packet_.data() + covered.size(), wire::icrc(route_between(from, to), covered));
  return packet_;
}

}  // namespace weft::roce
