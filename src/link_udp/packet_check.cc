// SPDX-License-Identifier: BSD-2-Clause
// Is a datagram a packet that a station of this host may look at?
#include "packet_check.h"

#include "link_udp/route.h"
#include "wire/icrc.h"

namespace weft::udp {
namespace {

constexpr std::uint16_t kPkeyNumber = 0x7FFF;

// Identifications that Weft's own packets have: their place in a train.
bool plausible(const wire::Ipv4Words& words) {
  return words.identification < os::UdpSocket::kMaxSegments && words.fragment == 0x4000;
}

bool read(const os::Datagram& datagram, bool foreign, wire::Packet& packet, Drops& drops,
          wire::Tap* capture) {
  const wire::Route route = route_between(datagram.from, datagram.to);
  wire::Ipv4Words expected;
  expected.identification = static_cast<std::uint16_t>(datagram.index);
  const auto words = wire::check_icrc(route, datagram.bytes, expected);
  const bool right = words && (route.v6 || foreign || plausible(*words));
  if (capture != nullptr) [[unlikely]] {
    capture->packet(wire::CaptureDirection::kReceived, route, words.value_or(expected),
                    datagram.bytes, right ? "" : "dropped: its ICRC is wrong");
  }
  if (!right) {
    ++drops.wrong_crc;
  } else if (wire::parse(datagram.bytes, packet) != wire::Malformed::kNone) {
    ++drops.malformed;
  } else if ((packet.pkey & kPkeyNumber) != kPkeyNumber) {
    ++drops.wrong_pkey;
  } else {
    return true;
  }
  return false;
}

}  // namespace

bool read_packet(const os::Datagram& datagram, wire::Packet& packet, Drops& drops,
                 wire::Tap* capture) {
  return read(datagram, false, packet, drops, capture);
}

bool read_foreign_packet(const os::Datagram& datagram, wire::Packet& packet, Drops& drops,
                         wire::Tap* capture) {
  return read(datagram, true, packet, drops, capture);
}

}  // namespace weft::udp
