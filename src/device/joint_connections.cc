// SPDX-License-Identifier: BSD-2-Clause
// Over which link is a connection made?
#include "joint_connections.h"

#include "device/port.h"

namespace weft::device {

// The listener may have come between the two looks.
Result<link::ConnectionNumber> JointConnections::request(const os::SocketAddress& listener,
                                                         std::span<const std::byte> data,
                                                         link::ConnectionUser& user) {
  auto asked = near_.request(listener, data, user);
  if (asked || !Port::may_be_elsewhere(listener, asked.error().code)) return asked;
  asked = near_.request(listener, data, user);
  if (asked) return asked;
  return far_.request(listener, data, user);
}

}  // namespace weft::device
