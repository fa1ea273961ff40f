// SPDX-License-Identifier: BSD-2-Clause
// How do GIDs and IP addresses correspond? (annex A17.4.4)
#pragma once

#include <infiniband/verbs.h>

#include "os/socket_address.h"

namespace weft::verbs {

// An IPv4 address as an IPv4-mapped IPv6 address; port 0.
os::SocketAddress address_of_gid(const ibv_gid& gid);
ibv_gid gid_of(const os::SocketAddress& address);

}  // namespace weft::verbs
