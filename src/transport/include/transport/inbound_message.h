// SPDX-License-Identifier: BSD-2-Clause
// How does a target execute a SEND or a WRITE of several packets?
#pragma once

#include "wire/packet.h"
#include "work/target.h"

namespace weft::transport {

// The SEND or WRITE that a peer's packets are in the middle of, if any. The caller has checked that
// each packet is the next one and has the size that its opcode demands. One thread at a time.
class InboundMessage {
 public:
  // `target` outlives it.
  explicit InboundMessage(work::Target& target) : target_(target) {}
  ~InboundMessage() { break_off(); }
  InboundMessage(const InboundMessage&) = delete;
  InboundMessage& operator=(const InboundMessage&) = delete;

  // A message has begun and not ended.
  bool begun() const { return begun_ != Begun::kNothing; }
  // The packet begins a message while none has begun, or continues the one that has.
  bool fits(const wire::Packet& packet) const;
  // Executes the packet of a SEND or WRITE: fits() is true. After any verdict but kYes nothing has
  // changed, and a packet that found nothing ready may come again. When the packet is the last one,
  // the caller calls end() next.
  work::RequestVerdict take(const wire::Packet& packet);
  // Tells the target that the message is complete, with its last packet.
  void end(const wire::Packet& packet);
  // The message will not end. False when none had begun.
  bool break_off();

 private:
  enum class Begun : std::uint8_t { kNothing, kSend, kWrite };

  work::RequestVerdict take_send(const wire::Packet& packet, const wire::Layout& layout);
  work::RequestVerdict take_write(const wire::Packet& packet, const wire::Layout& layout);

  work::Target& target_;
  Begun begun_ = Begun::kNothing;
  work::RemoteMemory memory_;   // of a write
  std::uint64_t received_ = 0;  // bytes of it
};

}  // namespace weft::transport
