// SPDX-License-Identifier: BSD-2-Clause
// Between which two sockets do packets of a flow go?
#include "roce/route.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/path_mtu.h"
#include "wire/packet.h"

namespace weft::roce {
namespace {

void put(const os::SocketAddress& address, std::array<std::byte, 16>& out, std::uint16_t& port) {
  port = address.port();
  std::ranges::copy(address.host_bytes(), out.begin());
}

}  // namespace

wire::Route route_between(const os::SocketAddress& from, const os::SocketAddress& to) {
  wire::Route route;
  route.v6 = to.family() == AF_INET6;
  put(from, route.source, route.source_port);
  put(to, route.destination, route.destination_port);
  return route;
}

Result<os::UdpPath> path_from(const os::SocketAddress& own, const os::SocketAddress& peer) {
  if (peer.family() != own.family()) {
    return Error{EHOSTUNREACH, peer.text() + " is an address of another family"};
  }
  auto path = os::udp_path_to(peer, own);
  if (path) path.value().source.set_port(own.port());
  return path;
}

std::size_t path_mtu_within(std::size_t packet, int family) {
  constexpr std::size_t kUnit = wire::kReliableDatagramMtuUnit;
  constexpr std::size_t kUdp = 8;
  const std::size_t ip = family == AF_INET6 ? 40 : 20;
  const std::size_t others = ip + kUdp + wire::kMaxHeaderBytesOfPayload + wire::kIcrcBytes;
  const std::size_t room = packet > others ? (packet - others) / kUnit * kUnit : 0;
  return std::clamp(room, kLeastPathMtu, wire::kMaxReliableDatagramMtu);
}

}  // namespace weft::roce
