// SPDX-License-Identifier: BSD-2-Clause
// What does a port do with the packets for a queue pair?
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/udp_socket.h"
#include "wire/packet.h"

namespace weft::roce {

// A packet whose ICRC and P_Key are right. Valid during the call that hands it over.
struct PacketArrival {
  const wire::Packet& packet;
  // That of a foreign peer has port 4791, but for a REQ for a service of Weft.
  const os::SocketAddress& from;
  const os::SocketAddress& to;
  std::uint64_t group = 0;  // number of the multicast group that it was sent to; 0: none
  bool marked = false;      // a router has marked it: congestion experienced (RFC 3168)
};

// The owner of one or more queue pairs of a port. Called from within PacketPort::poll() and
// report_errors() only.
class PacketHandler {
 public:
  // A packet for one of its queue pairs.
  virtual void take(const PacketArrival& arrival) = 0;
  // A congestion notification packet for one of its queue pairs. Its source address can be forged.
  virtual void take_cnp(const PacketArrival& arrival) = 0;
  // The system knows another path MTU to that peer.
  virtual void path_changed(const os::SocketAddress& /*peer*/) {}
  // An ICMP error: a port, host or network is unreachable.
  virtual void unreachable(const os::UdpError& error) = 0;

 protected:
  ~PacketHandler() = default;
};

}  // namespace weft::roce
