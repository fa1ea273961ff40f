// SPDX-License-Identifier: BSD-2-Clause
// How does work become a packet of an unreliable datagram?
#include "transport/datagram.h"

#include "packets.h"

namespace weft::transport {

std::size_t write_datagram(const UdHeader& header, const work::Work& work,
                           work::LocalMemory& memory, std::span<const work::Segment> sges,
                           std::span<std::byte> out) {
  wire::Packet packet;
  packet.opcode = opcode_of(wire::Transport::kUnreliableDatagram, operation_of(work, true, true));
  packet.solicited = work.solicited;
  packet.source = header.source;
  packet.destination = header.destination;
  packet.queue_key = header.queue_key;
  packet.psn = header.psn;
  packet.immediate = work.immediate;
  return write_packet(packet, memory, sges, 0, work.length, out);
}

}  // namespace weft::transport
