// SPDX-License-Identifier: BSD-2-Clause
// Between which two sockets do packets of a flow go?
#include "route.h"

#include <cstring>

#include "wire/packet.h"

namespace weft::udp {
namespace {

constexpr std::size_t kIpv6AndUdp = 48;

void put(const os::SocketAddress& address, std::array<std::byte, 16>& out, std::uint16_t& port) {
  port = address.port();
  if (address.family() == AF_INET6) {
    std::memcpy(out.data(), &reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr, 16);
  } else {
    std::memcpy(out.data(), &reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr, 4);
  }
}

}  // namespace

wire::Route route_between(const os::SocketAddress& from, const os::SocketAddress& to) {
  wire::Route route;
  route.v6 = to.family() == AF_INET6;
  put(from, route.source, route.source_port);
  put(to, route.destination, route.destination_port);
  return route;
}

std::size_t path_mtu_within(std::size_t packet) {
  constexpr std::size_t kOverhead = kIpv6AndUdp + wire::kMaxHeaderBytes + wire::kIcrcBytes;
  std::size_t mtu = wire::kMaxPathMtu;
  while (mtu > 256 && mtu + kOverhead > packet) mtu /= 2;
  return mtu;
}

}  // namespace weft::udp
