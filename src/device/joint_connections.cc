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

Result<link::ConnectionNumber> JointConnections::accept(const link::ConnectionRequest& request,
                                                        std::span<const std::byte> data,
                                                        link::ConnectionUser& user) {
  return request.within_host ? near_.accept(request, data, user) : far_.accept(request, data, user);
}

void JointConnections::turn_down(const link::ConnectionRequest& request) {
  request.within_host ? near_.turn_down(request) : far_.turn_down(request);
}

Status JointConnections::listen(std::size_t backlog, link::ListenerUser& user) {
  if (Status ok = near_.listen(backlog, user); !ok) return ok;
  return far_.listen(backlog, user);
}

void JointConnections::set_backlog(std::size_t backlog) {
  near_.set_backlog(backlog);
  far_.set_backlog(backlog);
}

}  // namespace weft::device
