// SPDX-License-Identifier: BSD-2-Clause
// Is a datagram a packet that a station of this host may look at?
#include "roce/packet_check.h"

#include "os/udp_socket.h"
#include "roce/route.h"

namespace weft::roce {
namespace {

constexpr std::uint16_t kPkeyNumber = 0x7FFF;

// Identifications that Weft's own packets have: their place in a train.
bool plausible(const wire::Ipv4Words& words) {
  return words.identification < os::UdpSocket::kMaxSegments && words.fragment == 0x4000;
}

}  // namespace

bool PacketCheck::read(const os::Datagram& datagram, bool foreign, wire::Packet& packet,
                       Stats& stats) {
  if (!(from_ == datagram.from && to_ == datagram.to)) {
    from_ = datagram.from;
    to_ = datagram.to;
    crc_ = wire::RouteCrc(route_between(from_, to_));
  }
  wire::Ipv4Words expected;
  expected.identification = static_cast<std::uint16_t>(datagram.index);
  const auto words = wire::check_icrc(crc_, datagram.bytes, expected);
  const bool right = words && (crc_.route().v6 || foreign || plausible(*words));
  if (capture_ != nullptr) [[unlikely]] {
    capture_->packet(wire::CaptureDirection::kReceived, crc_.route(), words.value_or(expected),
                     datagram.bytes, right ? "" : "dropped: its ICRC is wrong");
  }
  if (!right) {
    stats.add(Stat::kIcrcErrors);
  } else if (wire::parse(datagram.bytes, packet) != wire::Malformed::kNone) {
    stats.add(Stat::kMalformedPackets);
  } else if ((packet.pkey & kPkeyNumber) != kPkeyNumber) {
    stats.add(Stat::kPkeyViolations);
  } else {
    return true;
  }
  return false;
}

}  // namespace weft::roce
