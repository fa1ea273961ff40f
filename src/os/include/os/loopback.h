// SPDX-License-Identifier: BSD-2-Clause
// Which addresses do tests and fuzzers give to endpoints that nobody else is to meet?
#pragma once

#include "os/udp_port.h"

namespace weft::os {

// 127.0.0.1 with that port. Nothing is bound.
inline SocketAddress loopback(std::uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  v4.sin_port = htons(port);
  return SocketAddress::parse(&v4, sizeof v4).value();
}

}  // namespace weft::os
