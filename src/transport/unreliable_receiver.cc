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

// What is not from this connection changes nothing in what has begun.
std::optional<Drop> UnreliableReceiver::refusal_of(const wire::Packet& packet) {
  if (wire::transport_of(packet.opcode) != settings_.kind) return Drop::kTransport;
  if (!wire::pkeys_match(packet.pkey, settings_.pkey)) return Drop::kPartition;
  const wire::Layout& layout = wire::layout_of(packet.opcode);
  if (layout.starts || !continues(packet)) break_message();
  if (!layout.starts && message_ == Message::kNone) {
    return std::exchange(dropping_, true) ? Drop::kRest : Drop::kSequence;
  }
  expected_ = packet.psn.after(1);
  const std::optional<Drop> reason = carry_out(packet, layout);
  if (reason) break_message();
  dropping_ = reason && !layout.ends;
  return reason;
}

bool UnreliableReceiver::continues(const wire::Packet& packet) const {
  const bool sends = is_send(wire::operation_of(packet.opcode));
  return packet.psn == expected_ && message_ == (sends ? Message::kSend : Message::kWrite);
}

void UnreliableReceiver::break_message() {
  const Message message = std::exchange(message_, Message::kNone);
  if (message == Message::kNone) return;
  ++counts_.broken;
  if (message == Message::kSend) target_.message_breaks();
}

std::optional<Drop> UnreliableReceiver::carry_out(const wire::Packet& packet,
                                                  const wire::Layout& layout) {
  if (!right_size(packet, settings_.path_mtu)) return Drop::kLength;
  const bool sends = is_send(wire::operation_of(packet.opcode));
  const std::optional<Drop> reason = sends ? take_send(packet, layout) : take_write(packet, layout);
  if (!reason && layout.ends) ++counts_.messages;
  return reason;
}

std::optional<Drop> UnreliableReceiver::take_send(const wire::Packet& packet,
                                                  const wire::Layout& layout) {
  if (layout.starts) {
    if (const RequestVerdict verdict = target_.message_begins(); !verdict.ok())
      return drop_for(verdict);
    message_ = Message::kSend;
  }
  if (const RequestVerdict verdict = target_.message_goes_on(packet.payload); !verdict.ok()) {
    return drop_for(verdict);
  }
  if (!layout.ends) return std::nullopt;
  message_ = Message::kNone;
  target_.message_ends(packet);
  return std::nullopt;
}

// The whole length is checked at the beginning, so that what is refused then touches no byte.
std::optional<Drop> UnreliableReceiver::take_write(const wire::Packet& packet,
                                                   const wire::Layout& layout) {
  if (layout.starts) {
    memory_ = packet.reth;
    received_ = 0;
    if (memory_.length > kMaxMessage) return Drop::kLength;
  }
  const std::uint64_t before = received_;
  received_ += packet.payload.size();
  if (!right_progress(received_, memory_.length, layout.ends)) return Drop::kLength;
  if (layout.starts) {
    const RequestVerdict allowed = target_.may_access(Access::kRemoteWrite, memory_);
    if (!allowed.ok()) return drop_for(allowed);
  }
  if ((layout.headers & wire::kImmediate) != 0) {
    if (const RequestVerdict ready = target_.may_tell(); !ready.ok()) return drop_for(ready);
  }
  if (!packet.payload.empty()) {
    const RequestVerdict done = target_.write(memory_, before, packet.payload);
    if (!done.ok()) return drop_for(done);
  }
  message_ = layout.ends ? Message::kNone : Message::kWrite;
  if (layout.ends) target_.written(memory_, packet);
  return std::nullopt;
}

}  // namespace weft::transport
