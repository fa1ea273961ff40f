// SPDX-License-Identifier: BSD-2-Clause
// Where is an endpoint, and by which links do its peers reach it?
#pragma once

#include <cstdint>

#include "base/options.h"
#include "os/udp_port.h"

namespace weft::link {

// The address of an endpoint. `port` holds it, and is needed for the network only; it outlives the
// call that a place is given to.
struct Place {
  Place() = default;
  Place(const os::SocketAddress& its_address) : address(its_address) {}
  Place(const os::UdpPort& its_port, Links its_links)
      : address(its_port.address()), port(&its_port), links(its_links) {}

  os::SocketAddress address;
  const os::UdpPort* port = nullptr;
  Links links{true, false};
  std::uint8_t traffic_class = 0;  // of packets that leave; ECN, bits 0 and 1, is the link's affair
};

}  // namespace weft::link
