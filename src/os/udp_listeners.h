// SPDX-License-Identifier: BSD-2-Clause
// By which ways can it be found out whether anybody listens at an address?
#pragma once

#include <optional>

#include "os/udp_port.h"

namespace weft::os {

// Whether the kernel finds somebody when asked for one address; nothing when it does not answer.
std::optional<bool> found_by_kernel(const SocketAddress& address);

// Whether somebody stands in the list of all sockets; true, too, when that does not hold still.
bool is_listed(const SocketAddress& address);

}  // namespace weft::os
