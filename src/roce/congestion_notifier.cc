// SPDX-License-Identifier: BSD-2-Clause
// Which senders get congestion notification packets?
#include "roce/congestion_notifier.h"

#include <algorithm>
#include <cstring>

#include "wire/endian.h"

namespace weft::roce {

std::uint32_t CongestionNotifier::flow_identity_of(const wire::Packet& notification) {
  constexpr std::size_t kFlowIdentityBytes = sizeof(std::uint32_t);
  const std::span<const std::byte> reserved = notification.payload;
  return reserved.size() < kFlowIdentityBytes ? 0 : wire::load<std::uint32_t>(reserved.data());
}

std::size_t CongestionNotifier::notify(const wire::Route& route, std::uint32_t sender,
                                       std::uint32_t flow_identity, os::Time now,
                                       std::span<std::byte, kBytes> out) {
  if (sent_at_.size() >= many_) forget_old(now);
  const auto [place, fresh] = sent_at_.try_emplace({route.source, sender}, now);
  if (!fresh) {
    if (now - place->second < kInterval) return 0;
    place->second = now;
  }
  wire::Packet packet;
  packet.opcode = wire::kCongestionNotification;
  packet.migrated = false;
  packet.becn = true;
  packet.destination = sender;
  wire::write_headers(packet, kBytes - wire::kBthBytes, out.data());
  std::memset(out.data() + wire::kBthBytes, 0, kBytes - wire::kBthBytes);
  wire::store<std::uint32_t>(out.data() + wire::kBthBytes, flow_identity);
  return kBytes;
}

void CongestionNotifier::forget_old(os::Time now) {
  std::erase_if(sent_at_, [&](const auto& each) { return now - each.second >= kInterval; });
  many_ = std::max(kFew, 2 * sent_at_.size());
}

}  // namespace weft::roce
