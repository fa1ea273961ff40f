// SPDX-License-Identifier: BSD-2-Clause
// What does an endpoint for datagrams do when a way is full?
#include "datagram_hub.h"
#include "roce/route.h"

namespace weft::udp {

// The sender gets a CNP from the port that it sent to, also if that was 4791.
void DatagramHub::take_mark(const roce::PacketArrival& arrival) {
  os::SocketAddress own = arrival.to;
  own.set_port(port_->address().port());
  const roce::Path path{own, arrival.from, roce::route_between(own, arrival.from)};
  port_->send_cnp(path, arrival.packet.source, 0, std::chrono::steady_clock::now());
}

// The source address of a CNP can be forged: it only lowers the rate, to a minimum above 0. A CNP
// from an address that this end has not sent to is ignored.
void DatagramHub::take_cnp(const roce::PacketArrival& arrival) {
  const auto found = targets_.find(arrival.from.text());
  if (found == targets_.end() || found->second == nullptr) {
    ++port_->drops().unknown_flow;
    return;
  }
  found->second->pace.marked(std::chrono::steady_clock::now());
}

}  // namespace weft::udp
