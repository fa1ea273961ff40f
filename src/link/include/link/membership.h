// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint hear what is sent to a multicast group?
#pragma once

#include <cstdint>
#include <memory>

#include "os/socket_address.h"

namespace weft::link {

// Being a member of a group: what is sent to it arrives until the last copy is gone, and a little
// longer. What that keeps is the link's.
using Membership = std::shared_ptr<void>;

// The number under which messages to a group arrive: never 0, and as good as never that of another.
inline std::uint64_t group_number(const os::SocketAddress& group) {
  std::uint64_t number = 0xcbf29ce484222325;  // FNV-1a
  for (const char byte : group.text()) {
    number = (number ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  return number | 1;
}

}  // namespace weft::link
