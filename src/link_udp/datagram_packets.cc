// SPDX-License-Identifier: BSD-2-Clause
// Which packets are datagrams for an endpoint, and whose are they?
#include "datagram_hub.h"
#include "roce/congestion_mark.h"
#include "roce/relay_header.h"
#include "roce/route.h"

namespace weft::udp {

namespace {

// Counts a packet for another queue pair, or for one with another key.
bool is_for(std::uint32_t queue_pair, const wire::Packet& packet, roce::PacketDrops& drops) {
  if (packet.destination != queue_pair ||
      wire::transport_of(packet.opcode) != wire::Transport::kUnreliableDatagram) {
    ++drops.wrong_queue_pair;
    return false;
  }
  if (packet.queue_key != kDatagramQueueKey) ++drops.wrong_queue_key;
  return packet.queue_key == kDatagramQueueKey;
}

}  // namespace

void DatagramHub::take(const roce::ReceiveSocket& socket, const os::Datagram& datagram,
                       link::InboxSink& sink) {
  if (roce::is_relayed(datagram.bytes) && options_.relay != nullptr) [[unlikely]] {
    const auto handed = roce::open_envelope(datagram, drops_);
    if (handed) take_foreign(handed->datagram(), 0, sink);
    return;
  }
  if (may_be_foreign(socket, datagram)) [[unlikely]]
    return take_foreign(datagram, socket.group, sink);
  wire::Packet packet;
  if (!check_.read(datagram, packet, drops_)) return;
  if (socket.group == 0 && packet.opcode == wire::kCongestionNotification) [[unlikely]]
    return take_cnp(packet, datagram.from);
  const std::uint32_t wanted = socket.group == 0 ? queue_pair_ : wire::kMulticastQpn;
  if (!is_for(wanted, packet, drops_)) return;
  hand_over(packet, datagram, datagram.from, socket.group, sink);
}

// The port that a foreign peer sends from says nothing: where it is, is at port 4791. So it can
// never be taken for one of Weft's endpoints, whatever a relay header says.
void DatagramHub::take_foreign(const os::Datagram& datagram, std::uint64_t group,
                               link::InboxSink& sink) {
  wire::Packet packet;
  if (!check_.read_foreign(datagram, packet, drops_)) return;
  if (!is_for(group == 0 ? queue_pair_ : wire::kMulticastQpn, packet, drops_)) return;
  if (!roce::is_foreign(packet.source)) {
    ++drops_.not_foreign;
    return;
  }
  os::SocketAddress from = datagram.from;
  from.set_port(wire::kUdpPort);
  hand_over(packet, datagram, from, group, sink);
}

// At the port that they know a foreign peer speaks to groups as Weft's endpoints do, and says so by
// its queue pair. Of those others the IPv4 identifications are known, and no other one is believed.
bool DatagramHub::may_be_foreign(const roce::ReceiveSocket& socket,
                                 const os::Datagram& datagram) const {
  if (socket.group == 0 || datagram.to.port() != wire::kUdpPort || options_.relay == nullptr) {
    return false;
  }
  wire::Packet packet;
  return wire::parse(datagram.bytes, packet) == wire::Malformed::kNone &&
         roce::is_foreign(packet.source);
}

// A sender cannot slow down for one member of a group: no CNP for multicast.
void DatagramHub::hand_over(const wire::Packet& packet, const os::Datagram& datagram,
                            const os::SocketAddress& from, std::uint64_t group,
                            link::InboxSink& sink) {
  if (roce::met_congestion(datagram) && group == 0) [[unlikely]]
    take_mark(packet.source, from, datagram.to);
  link::Arrival arrival;
  arrival.operation = link::Operation::kDatagram;
  arrival.source = sources_.number_of(from, sink);
  if (!sources_.listened_to(arrival.source)) return;
  arrival.has_data = (wire::layout_of(packet.opcode).headers & wire::kImmediate) != 0;
  arrival.data = packet.immediate;
  arrival.tag = group;
  arrival.length = packet.payload.size();
  arrival.payload = packet.payload.data();
  sink.arrived(arrival);
}

std::uint64_t DatagramHub::lost() const {
  return drops_.malformed + drops_.wrong_crc + drops_.wrong_pkey + drops_.wrong_queue_pair +
         drops_.wrong_queue_key + drops_.forged + drops_.not_foreign + dropped_before_ +
         receive_set_.dropped();
}

}  // namespace weft::udp
