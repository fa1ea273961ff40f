// SPDX-License-Identifier: BSD-2-Clause
// Which addresses do tests and fuzzers give to their own endpoints?
#pragma once

#include <arpa/inet.h>

#include <cstdlib>
#include <string>

#include "os/udp_port.h"

namespace weft::os {

// 127.0.0.1 with that port. Nothing is bound.
inline SocketAddress loopback(std::uint16_t port) {
  const in_addr host{htonl(INADDR_LOOPBACK)};
  return SocketAddress::of_host(AF_INET, &host, port);
}

// "192.0.2.1" or "2001:db8::1" with that port; a test that writes anything else is aborted.
inline SocketAddress address_of(const std::string& host, std::uint16_t port = 0,
                                std::uint32_t scope = 0) {
  const int family = host.find(':') == std::string::npos ? AF_INET : AF_INET6;
  in6_addr raw{};
  if (::inet_pton(family, host.c_str(), &raw) != 1) std::abort();
  return SocketAddress::of_host(family, &raw, port, scope);
}

}  // namespace weft::os
