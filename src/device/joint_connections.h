// SPDX-License-Identifier: BSD-2-Clause
// Over which link is a connection made?
#pragma once

#include "device/port.h"
#include "link/connection.h"
#include "mailbox_connections.h"

namespace weft::device {

// The connections of a port that has both links, which outlive it: within the host where the
// listener can be found and reached there, over the network to all others.
class JointConnections final : public link::Connections {
 public:
  JointConnections(link::Connections& same_host, link::Connections& remote)
      : same_host_(same_host), remote_(remote) {}

  // The listener may have come within the host between the two looks.
  Result<link::ConnectionNumber> request(const os::SocketAddress& listener,
                                         std::span<const std::byte> data,
                                         link::ConnectionUser& user) override {
    auto asked = same_host_.request(listener, data, user);
    if (asked || !Port::may_be_elsewhere(listener, asked.error().code)) return asked;
    asked = same_host_.request(listener, data, user);
    return asked ? asked : remote_.request(listener, data, user);
  }
  Result<link::ConnectionNumber> accept(const link::ConnectionRequest& request,
                                        std::span<const std::byte> data,
                                        link::ConnectionUser& user) override {
    return of(request).accept(request, data, user);
  }
  void reject(const link::ConnectionRequest& request) override { of(request).reject(request); }
  void disconnect(link::ConnectionNumber number) override { of(number).disconnect(number); }
  Status listen(std::size_t backlog, link::ListenerUser& user) override {
    const Status same_host = same_host_.listen(backlog, user);
    return same_host ? remote_.listen(backlog, user) : same_host;
  }
  void set_backlog(std::size_t backlog) override {
    same_host_.set_backlog(backlog);
    remote_.set_backlog(backlog);
  }
  void reject(link::ConnectionNumber request, std::span<const std::byte> data) override {
    of(request).reject(request, data);
  }
  void delay(link::ConnectionNumber request) override { of(request).delay(request); }
  void forward(link::ConnectionNumber request) override { of(request).forward(request); }

 private:
  link::Connections& of(link::ConnectionNumber number) {
    return number >= MailboxConnections::kFirstNumber ? same_host_ : remote_;
  }
  link::Connections& of(const link::ConnectionRequest& request) {
    return request.within_host ? same_host_ : remote_;
  }

  link::Connections& same_host_;
  link::Connections& remote_;
};

}  // namespace weft::device
