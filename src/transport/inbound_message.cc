// SPDX-License-Identifier: BSD-2-Clause
// How does a target execute a SEND or a WRITE of several packets?
#include "transport/inbound_message.h"

#include <utility>

#include "packets.h"

namespace weft::transport {

using work::RequestVerdict;

bool InboundMessage::fits(const wire::Packet& packet) const {
  if (wire::layout_of(packet.opcode).starts) return !begun();
  const bool sends = is_send(wire::operation_of(packet.opcode));
  return begun_ == (sends ? Begun::kSend : Begun::kWrite);
}

RequestVerdict InboundMessage::take(const wire::Packet& packet) {
  const wire::Layout& layout = wire::layout_of(packet.opcode);
  return is_send(wire::operation_of(packet.opcode)) ? take_send(packet, layout)
                                                    : take_write(packet, layout);
}

RequestVerdict InboundMessage::take_send(const wire::Packet& packet, const wire::Layout& layout) {
  if (layout.starts) {
    if (const RequestVerdict verdict = target_.message_begins(); !verdict.ok()) return verdict;
    begun_ = Begun::kSend;
  }
  if ((layout.headers & wire::kIeth) != 0) {
    const RequestVerdict allowed = target_.may_invalidate(packet.invalidate);
    if (!allowed.ok()) return allowed;
  }
  const RequestVerdict verdict = target_.message_goes_on(packet.payload);
  const bool not_begun = layout.starts && verdict.kind == RequestVerdict::Kind::kNotReady;
  if (not_begun) begun_ = Begun::kNothing;
  return verdict;
}

// The whole length is checked at the beginning, so that a refused write touches no byte.
RequestVerdict InboundMessage::take_write(const wire::Packet& packet, const wire::Layout& layout) {
  const work::RemoteMemory memory = layout.starts ? memory_of(packet) : memory_;
  if (memory.length > work::kMaxMessage) return work::kInvalidRequest;
  const std::uint64_t before = layout.starts ? 0 : received_;
  const std::uint64_t received = before + packet.payload.size();
  if (layout.ends ? received != memory.length : received >= memory.length)
    return work::kInvalidRequest;
  if (layout.starts) {
    const RequestVerdict allowed = target_.may_access(Access::kRemoteWrite, memory);
    if (!allowed.ok()) return allowed;
  }
  const bool with_immediate = (layout.headers & wire::kImmediate) != 0;
  if (with_immediate) {
    if (const RequestVerdict ready = target_.may_report_immediate(); !ready.ok()) return ready;
  }
  if (!packet.payload.empty()) {
    const RequestVerdict done = target_.write(memory, before, packet.payload);
    if (!done.ok()) return done;
  }
  begun_ = Begun::kWrite;
  memory_ = memory;
  received_ = received;
  return {};
}

void InboundMessage::end(const wire::Packet& packet) {
  if (std::exchange(begun_, Begun::kNothing) == Begun::kSend) {
    target_.message_ends(end_of(packet));
  } else {
    target_.written(memory_, end_of(packet));
  }
}

bool InboundMessage::break_off() {
  const Begun begun = std::exchange(begun_, Begun::kNothing);
  if (begun == Begun::kSend) target_.message_breaks();
  return begun != Begun::kNothing;
}

}  // namespace weft::transport
