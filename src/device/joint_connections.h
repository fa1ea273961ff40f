// SPDX-License-Identifier: BSD-2-Clause
// Over which link is a connection made?
#pragma once

#include "link/connection.h"
#include "mailbox_connections.h"

namespace weft::device {

// The connections of a port that has both links, which outlive it: within the host where the
// listener can be found and reached there, over the network to all others.
class JointConnections final : public link::Connections {
 public:
  JointConnections(MailboxConnections& near, link::Connections& far) : near_(near), far_(far) {}

  Result<link::ConnectionNumber> request(const os::SocketAddress& listener,
                                         std::span<const std::byte> data,
                                         link::ConnectionUser& user) override;
  Result<link::ConnectionNumber> accept(const link::ConnectionRequest& request,
                                        std::span<const std::byte> data,
                                        link::ConnectionUser& user) override;
  void turn_down(const link::ConnectionRequest& request) override;
  void disconnect(link::ConnectionNumber number) override { of(number).disconnect(number); }
  Status listen(std::size_t backlog, link::ListenerUser& user) override;
  void set_backlog(std::size_t backlog) override;
  void reject(link::ConnectionNumber request, std::span<const std::byte> data) override {
    of(request).reject(request, data);
  }
  void delay(link::ConnectionNumber request) override { of(request).delay(request); }
  void forward(link::ConnectionNumber request) override { of(request).forward(request); }

 private:
  link::Connections& of(link::ConnectionNumber number) {
    if (number >= MailboxConnections::kFirstNumber) return near_;
    return far_;
  }

  MailboxConnections& near_;
  link::Connections& far_;
};

}  // namespace weft::device
