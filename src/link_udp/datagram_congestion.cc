// SPDX-License-Identifier: BSD-2-Clause
// What does an endpoint for datagrams do when a way is full?
#include <array>

#include "datagram_hub.h"
#include "roce/route.h"

namespace weft::udp {

// A datagram of that queue pair arrived ECN-marked: its sender at `to` gets a CNP. Per-sender CNP
// state expires after the shortest interval between two CNPs.
void DatagramHub::take_mark(std::uint32_t sender, const os::SocketAddress& to,
                            os::SocketAddress from) {
  from.set_port(socket_.address().port());
  std::array<std::byte, roce::CongestionNotifier::kBytes> notice;
  const os::Time now = std::chrono::steady_clock::now();
  if (notifier_.notify(roce::route_between(to, from), sender, 0, now, notice) == 0) return;
  sender_.send({from, to, roce::route_between(from, to)}, notice);
}

// The source address of a CNP can be forged: it only lowers the rate, to a minimum above 0. A CNP
// from an address that this end has not sent to is ignored.
void DatagramHub::take_cnp(const wire::Packet& packet, const os::SocketAddress& from) {
  const auto found = targets_.find(from.text());
  if (packet.destination != queue_pair_ || found == targets_.end() || found->second == nullptr) {
    ++drops_.unknown_flow;
    return;
  }
  found->second->pace.marked(std::chrono::steady_clock::now());
}

// Messages, and packets behind them, stay for the next poll. The socket is not readable any more
// then, so a sleeping thread is woken by the bell.
void DatagramHub::poll_for_cnps() {
  unheard_ = 0;
  const bool stays =
      receive_set_.skim([&](const roce::ReceiveSocket& socket, const os::Datagram& datagram) {
        const bool notice = socket.group == 0 && !datagram.bytes.empty() &&
                            datagram.bytes[0] == std::byte{wire::kCongestionNotification};
        wire::Packet packet;
        if (notice && check_.read(datagram, packet, drops_)) take_cnp(packet, datagram.from);
        return notice;
      });
  if (stays) bell_.set();
  if (receive_set_.met_errors()) take_errors();
}

}  // namespace weft::udp
