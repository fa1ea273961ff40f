// SPDX-License-Identifier: BSD-2-Clause
// Which way would datagrams to a peer take: from which local address, and how large may they be?
#include "os/udp_path.h"

#include <sys/socket.h>

#include "os/cancellation.h"
#include "os/fd.h"

namespace weft::os {
namespace {

std::size_t mtu_of(int connected, int family) {
  int mtu = 0;
  socklen_t length = sizeof mtu;
  const bool v6 = family == AF_INET6;
  if (::getsockopt(connected, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MTU : IP_MTU, &mtu,
                   &length) != 0) {
    return 0;
  }
  return mtu > 0 ? static_cast<std::size_t>(mtu) : 0;
}

}  // namespace

Result<UdpPath> udp_path_to(const SocketAddress& peer, const SocketAddress& source) {
  const CancellationOff off;
  SocketAddress to = peer;
  if (to.port() == 0) to.set_port(9);  // connect(2) wants some port; the way does not depend on it
  const Fd socket(::socket(to.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return last_error("cannot open a UDP socket");
  if (source.family() != AF_UNSPEC && !source.is_any()) {
    SocketAddress from = source;
    from.set_port(0);
    if (::bind(socket.get(), from.get(), from.length()) != 0) {
      return last_error("cannot send from " + source.host());
    }
  }
  if (::connect(socket.get(), to.get(), to.length()) != 0) {
    return last_error("no route to " + peer.host());
  }
  Result<SocketAddress> local = bound_to(socket);
  if (!local) return local.error();
  local.value().set_port(0);
  return UdpPath{local.value(), mtu_of(socket.get(), to.family())};
}

}  // namespace weft::os
