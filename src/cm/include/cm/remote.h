// SPDX-License-Identifier: BSD-2-Clause
// Where is the other end of a connection, and what carries messages to it?
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/socket_address.h"

namespace weft::cm {

// What carries a message. The mailbox loses nothing, and its users watch each other's processes.
enum class Carrier : std::uint8_t {
  kPackets,  // UDP packets to queue pair 1
  kMailbox,  // the mailbox of a process on this host
};
inline constexpr std::size_t kCarriers = 2;

// The source of a message, which its answer goes to, and no other place that the message names.
struct Remote {
  os::SocketAddress address;
  Carrier carrier = Carrier::kPackets;

  // By the same carrier.
  bool is_of_same_host(Remote other) const {
    other.address.set_port(address.port());
    return *this == other;
  }
  friend bool operator==(const Remote& a, const Remote& b) {
    return a.address == b.address && a.carrier == b.carrier;
  }
};

}  // namespace weft::cm
