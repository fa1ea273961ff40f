// SPDX-License-Identifier: BSD-2-Clause
// What is made of unreliable datagrams?
#include "transport/datagram_receiver.h"

#include "packets.h"
#include "refusals.h"

namespace weft::transport {

void DatagramReceiver::take(const wire::Packet& packet, const wire::Arrival& arrival) {
  const std::optional<Drop> reason = refusal_of(packet, arrival);
  if (reason) {
    drops_.count(*reason);
  } else {
    ++messages_;
  }
}

std::optional<Drop> DatagramReceiver::refusal_of(const wire::Packet& packet,
                                                 const wire::Arrival& arrival) {
  if (wire::transport_of(packet.opcode) != settings_.kind) return Drop::kTransport;
  if (!wire::pkeys_match(packet.pkey, settings_.pkey)) return Drop::kPartition;
  if (packet.queue_key != settings_.queue_key) return Drop::kQueueKey;
  if (!right_size(packet, settings_.path_mtu)) return Drop::kLength;
  if (const RequestVerdict verdict = target_.message_begins(); !verdict.ok())
    return drop_for(verdict);
  const std::size_t payload = packet.payload.size();
  const std::size_t datagram =
      wire::header_bytes(packet) + payload + wire::padding_of(payload) + wire::kIcrcBytes;
  RequestVerdict verdict = target_.message_goes_on(wire::global_route(arrival, datagram));
  if (verdict.ok()) verdict = target_.message_goes_on(packet.payload);
  if (!verdict.ok()) {
    target_.message_breaks();
    return drop_for(verdict);
  }
  target_.message_ends(packet);
  return std::nullopt;
}

}  // namespace weft::transport
