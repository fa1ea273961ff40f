// SPDX-License-Identifier: BSD-2-Clause
// What do a responder's answers look like, and in which order do they go?
#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/responder.h"

namespace weft::transport {

using wire::Operation;

wire::Packet Responder::response(Operation operation, Psn psn, std::uint32_t number) const {
  wire::Packet packet;
  packet.opcode = opcode_of(settings_.kind, operation);
  packet.pkey = settings_.pkey;
  packet.destination = settings_.destination;
  packet.psn = psn;
  packet.end_to_end_context = settings_.context;
  packet.syndrome = kSyndromeAck | kNoCredits;
  packet.message_number = number;
  return packet;
}

// What was missing may have come before the peer was told so.
bool Responder::ready() const {
  if (ack_owed_ || report_owed_ || nak_ != 0 || !answers_.empty()) return true;
  return std::any_of(asked_.begin(), asked_.end(),
                     [this](const PsnRange& range) { return holes_.first_in(range).count != 0; });
}

// Values first, in their order: an acknowledgement covers all requests before it. Missing packets
// may be named at any time, followed by the acknowledgement that was asked for.
std::size_t Responder::next(std::span<std::byte> out) {
  while (!asked_.empty()) {
    const PsnRange range = holes_.first_in(asked_.front());
    if (range.count == 0) {
      asked_.erase(asked_.begin());
      continue;
    }
    asked_.front().count -= static_cast<std::uint32_t>(range.end().since(asked_.front().first));
    asked_.front().first = range.end();
    return write_status(range.first, kSyndromeNak, range.count, out);
  }
  if (std::exchange(report_owed_, false) && !holes_.empty()) {
    return write_status(highest_.after(-1), kSyndromeNak, 0, out);
  }
  if (!answers_.empty()) return write_value(out);
  if (nak_ != 0) {
    ack_owed_ = false;
    return write_status(expected_, std::exchange(nak_, std::uint8_t{0}), message_number_, out);
  }
  if (!std::exchange(ack_owed_, false)) return 0;
  unanswered_since_ = Time::max();
  return write_status(expected_.after(-1), kSyndromeAck | kNoCredits, message_number_, out);
}

std::size_t Responder::write_status(Psn psn, std::uint8_t syndrome, std::uint32_t number,
                                    std::span<std::byte> out) {
  wire::Packet packet = response(Operation::kAcknowledge, psn, number);
  packet.syndrome = syndrome;
  wire::write_headers(packet, 0, out.data());
  return wire::header_bytes(packet);
}

std::size_t Responder::write_value(std::span<std::byte> out) {
  Value& value = answers_.front();
  if (value.lost) return write_lost_read(value.range.first, out);
  if (value.reads) return write_read(value, out);
  wire::Packet packet =
      response(Operation::kAtomicAcknowledge, value.range.first, value.message_number);
  packet.original = value.original;
  wire::write_headers(packet, 0, out.data());
  answers_.erase(answers_.begin());
  return wire::header_bytes(packet);
}

// The request was in order, and others behind it have been carried out since: of reliable datagrams
// it alone fails, and the numbers go on.
std::size_t Responder::write_lost_read(Psn psn, std::span<std::byte> out) {
  constexpr RequestVerdict kLost{RequestVerdict::Kind::kOperational, 0};
  answers_.erase(answers_.begin());
  if (!datagrams()) {
    refuse(kLost);
    answers_.clear();
    nak_ = 0;
    ack_owed_ = false;
  }
  const auto code = static_cast<std::uint8_t>(Nak::kRemoteOperational);
  return write_status(psn, kSyndromeNak | code, message_number_, out);
}

// Memory that was readable when the request came may have gone.
std::size_t Responder::write_read(Value& value, std::span<std::byte> out) {
  const std::uint32_t index = value.written++;
  const bool first = index == 0;
  const bool last = value.written == value.range.count;
  Operation operation = Operation::kReadResponseMiddle;
  if (last)
    operation = first ? Operation::kReadResponseOnly : Operation::kReadResponseLast;
  else if (first)
    operation = Operation::kReadResponseFirst;
  const wire::Packet packet = response(
      operation, value.range.first.after(static_cast<std::int32_t>(index)), value.message_number);
  const std::uint64_t begin = std::uint64_t{index} * settings_.path_mtu;
  const std::size_t payload =
      std::min<std::uint64_t>(settings_.path_mtu, value.memory.length - begin);
  const std::size_t headers = wire::header_bytes(packet);
  wire::write_headers(packet, payload, out.data());
  if (payload != 0) {
    const RequestVerdict verdict = target_.read(value.memory, begin, out.subspan(headers, payload));
    if (!verdict.ok()) return write_lost_read(packet.psn, out);
  }
  std::memset(out.data() + headers + payload, 0, wire::padding_of(payload));
  if (last) answers_.erase(answers_.begin());
  return headers + payload + wire::padding_of(payload);
}

}  // namespace weft::transport
