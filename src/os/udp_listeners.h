// SPDX-License-Identifier: BSD-2-Clause
// By which ways can it be found out whether anybody listens at an address?
#pragma once

#include <optional>

#include "os/udp_port.h"

namespace weft::os {

// Whether the kernel finds a socket at the address; nothing when it does not answer.
std::optional<bool> found_by_kernel(const SocketAddress& address);

// Whether the list of all sockets has the address; true, too, while the list keeps changing.
bool is_listed(const SocketAddress& address);

}  // namespace weft::os
