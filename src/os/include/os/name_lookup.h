// SPDX-License-Identifier: BSD-2-Clause
// Which addresses do a host name and a service name stand for?
#pragma once

#include <vector>

#include "base/result.h"
#include "os/udp_port.h"

namespace weft::os {

// What to look up; see getaddrinfo(3).
struct NameQuery {
  const char* node = nullptr;     // name or numeric address; null: this host
  const char* service = nullptr;  // service name or port number; null: port 0
  bool passive = false;           // a null node means every local address, not the loopback one
  bool numeric = false;           // never ask a name server
  int family = 0;                 // AF_INET, AF_INET6, or AF_UNSPEC for both
};

// Every IPv4 and then every IPv6 address, each once. May block on a name server unless `numeric`.
// Errors: EINVAL when both names are null, the port is above 65535 or the name is none; ENODATA
// when nothing has that name; EAGAIN when the name server does not answer; ENOMEM. Any thread.
Result<std::vector<SocketAddress>> look_up(const NameQuery& query);

}  // namespace weft::os
