// SPDX-License-Identifier: BSD-2-Clause
// Which bytes stand in front of a received datagram? (IBTA 11.4.2.1, annex A17.4.5)
#pragma once

#include <array>
#include <cstddef>

#include "os/socket_address.h"
#include "queue/attributes.h"

namespace weft::queue {

// A global routing header: the IPv6 header of the packet, or in the last 20 bytes its IPv4 header
// with a valid checksum, as ibv_init_ah_from_wc(3) expects. `payload`: bytes behind the UDP header.
std::array<std::byte, kGrhBytes> make_grh(const os::SocketAddress& from,
                                          const os::SocketAddress& to, std::size_t payload);

}  // namespace weft::queue
