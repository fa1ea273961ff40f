// SPDX-License-Identifier: BSD-2-Clause
// What is made of the packets of an unreliable connection?
#include "transport/unreliable_receiver.h"

#include <utility>

#include "packets.h"
#include "refusals.h"

namespace weft::transport {

void UnreliableReceiver::take(const wire::Packet& packet) {
  const std::optional<Drop> reason = refusal_of(packet);
  if (reason) {
    drops_.count(*reason);
  } else {
    ++counts_.packets;
  }
}

// A packet that is not of this connection changes nothing in a message that has begun.
std::optional<Drop> UnreliableReceiver::refusal_of(const wire::Packet& packet) {
  if (wire::transport_of(packet.opcode) != settings_.kind) return Drop::kTransport;
  if (!wire::pkeys_match(packet.pkey, settings_.pkey)) return Drop::kPartition;
  const wire::Layout& layout = wire::layout_of(packet.opcode);
  const bool continues = packet.psn == expected_ && message_.fits(packet);
  if (layout.starts || !continues) break_message();
  if (!layout.starts && !message_.begun()) {
    return std::exchange(dropping_, true) ? Drop::kRest : Drop::kSequence;
  }
  expected_ = packet.psn.after(1);
  std::optional<Drop> reason = Drop::kLength;
  if (right_size(packet, settings_.path_mtu)) reason = drop_for(message_.take(packet));
  dropping_ = reason && !layout.ends;
  if (reason) {
    break_message();
  } else if (layout.ends) {
    message_.end(packet);
    ++counts_.messages;
  }
  return reason;
}

void UnreliableReceiver::break_message() {
  if (message_.break_off()) ++counts_.broken;
}

}  // namespace weft::transport
