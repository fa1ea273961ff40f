// SPDX-License-Identifier: BSD-2-Clause
// What does an endpoint for datagrams do when a way is full?
#include <array>

#include "datagram_hub.h"
#include "link_udp/route.h"

namespace weft::udp {

// A datagram of that queue pair met a queue on its way from `to`, where its sender hears of it. Of
// whom was told nothing is kept for longer than it takes to tell again.
void DatagramHub::take_mark(std::uint32_t sender, const os::SocketAddress& to,
                            os::SocketAddress from) {
  from.set_port(socket_.address().port());
  std::array<std::byte, transport::CongestionNotifier::kBytes> notice;
  const os::Time now = std::chrono::steady_clock::now();
  if (notifier_.notify(route_between(to, from), sender, 0, now, notice) == 0) return;
  sender_.send({from, to, route_between(from, to)}, notice);
}

// Anybody can forge where it comes from: it costs speed, and never all of it. Whoever was sent
// nothing has nothing to say.
void DatagramHub::take_cnp(const wire::Packet& packet, const os::SocketAddress& from) {
  const auto found = targets_.find(from.text());
  if (packet.destination != queue_pair_ || found == targets_.end() || found->second == nullptr) {
    ++drops_.unknown_flow;
    return;
  }
  found->second->pace.marked(std::chrono::steady_clock::now());
}

// Messages are for the next poll, and so is what came behind them. Somebody may be asleep
// meanwhile, whom the socket does not wake any more.
void DatagramHub::poll_for_cnps() {
  unheard_ = 0;
  const bool stays =
      receive_set_.skim([&](const ReceiveSocket& socket, const os::Datagram& datagram) {
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
