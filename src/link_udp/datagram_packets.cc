// SPDX-License-Identifier: BSD-2-Clause
// Which packets are datagrams for an endpoint, and whose are they?
#include "datagram_hub.h"
#include "packet_check.h"

namespace weft::udp {

void DatagramHub::take(const Ear& ear, const os::Datagram& datagram, link::InboxSink& sink) {
  wire::Packet packet;
  if (!read_packet(datagram, packet, drops_, options_.capture)) return;
  const std::uint32_t wanted = ear.group == 0 ? queue_pair_ : wire::kMulticastQpn;
  if (packet.destination != wanted ||
      wire::transport_of(packet.opcode) != wire::Transport::kUnreliableDatagram) {
    ++drops_.wrong_queue_pair;
    return;
  }
  if (packet.queue_key != kDatagramQueueKey) {
    ++drops_.wrong_queue_key;
    return;
  }
  link::Arrival arrival;
  arrival.operation = link::Operation::kDatagram;
  arrival.source = sources_.number_of(datagram.from, sink);
  if (!sources_.listened_to(arrival.source)) return;
  arrival.has_data = (wire::layout_of(packet.opcode).headers & wire::kImmediate) != 0;
  arrival.data = packet.immediate;
  arrival.tag = ear.group;
  arrival.length = packet.payload.size();
  arrival.payload = packet.payload.data();
  sink.arrived(arrival);
}

std::uint64_t DatagramHub::lost() const {
  return drops_.malformed + drops_.wrong_crc + drops_.wrong_pkey + drops_.wrong_queue_pair +
         drops_.wrong_queue_key + dropped_before_ + ears_.dropped();
}

}  // namespace weft::udp
