// SPDX-License-Identifier: BSD-2-Clause
// Which packets are datagrams for an endpoint, and whose are they?
#include "datagram_hub.h"

namespace weft::udp {

void DatagramHub::take(const roce::PacketArrival& arrival) {
  const wire::Packet& packet = arrival.packet;
  if (wire::transport_of(packet.opcode) != wire::Transport::kUnreliableDatagram) {
    ++port_->drops().wrong_queue_pair;
    return;
  }
  if (packet.queue_key != kDatagramQueueKey) {
    ++port_->drops().wrong_queue_key;
    return;
  }
  // A sender cannot slow down for one member of a group: no CNP for multicast.
  if (arrival.marked && arrival.group == 0) [[unlikely]]
    take_mark(arrival);
  link::Arrival message;
  message.operation = link::Operation::kDatagram;
  message.source = sources_.number_of(arrival.from, *sink_);
  if (!sources_.listened_to(message.source)) return;
  message.has_data = (wire::layout_of(packet.opcode).headers & wire::kImmediate) != 0;
  message.data = packet.immediate;
  message.tag = arrival.group;
  message.length = packet.payload.size();
  message.payload = packet.payload.data();
  sink_->arrived(message);
}

std::uint64_t DatagramHub::lost() const {
  const roce::PacketDrops& drops = port_->drops();
  return drops.malformed + drops.wrong_crc + drops.wrong_pkey + drops.wrong_queue_pair +
         drops.wrong_queue_key + drops.forged + drops.not_foreign + port_->unread();
}

}  // namespace weft::udp
