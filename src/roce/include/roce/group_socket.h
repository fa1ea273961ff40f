// SPDX-License-Identifier: BSD-2-Clause
// How does a port hear a multicast group?
#pragma once

#include <memory>
#include <utility>

#include "roce/packet_port.h"

namespace weft::roce {

// A socket that hears a group for one port, for as long as this lives.
class GroupSocket {
 public:
  // By the interface of the port's address, or the one that leads to the group where that is a
  // wildcard. The group's packets have that number (not 0). Errors: ENETUNREACH where no interface
  // leads there, others of os::UdpSocket::join() and epoll_ctl(2).
  static Result<std::unique_ptr<GroupSocket>> join(PacketPort& port, const os::SocketAddress& group,
                                                   std::uint64_t number);
  ~GroupSocket() { port_.stop_listening(socket_); }
  GroupSocket(const GroupSocket&) = delete;
  GroupSocket& operator=(const GroupSocket&) = delete;

 private:
  GroupSocket(PacketPort& port, os::UdpSocket socket) : port_(port), socket_(std::move(socket)) {}

  PacketPort& port_;
  os::UdpSocket socket_;
};

}  // namespace weft::roce
