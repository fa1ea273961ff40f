// SPDX-License-Identifier: BSD-2-Clause
// How do work and packets correspond?
#include "packets.h"

#include <algorithm>
#include <cstring>

namespace weft::transport {

using wire::Operation;
using work::Work;
using work::WorkKind;

namespace {

Operation send_operation(const Work& work, bool first, bool last) {
  if (!last) return first ? Operation::kSendFirst : Operation::kSendMiddle;
  if (work.invalidates) {
    return first ? Operation::kSendOnlyInvalidate : Operation::kSendLastInvalidate;
  }
  if (work.has_immediate) {
    return first ? Operation::kSendOnlyImmediate : Operation::kSendLastImmediate;
  }
  return first ? Operation::kSendOnly : Operation::kSendLast;
}

Operation write_operation(const Work& work, bool first, bool last) {
  if (!last) return first ? Operation::kWriteFirst : Operation::kWriteMiddle;
  if (work.has_immediate) {
    return first ? Operation::kWriteOnlyImmediate : Operation::kWriteLastImmediate;
  }
  return first ? Operation::kWriteOnly : Operation::kWriteLast;
}

}  // namespace

Operation operation_of(const Work& work, bool first, bool last) {
  switch (work.kind) {
    case WorkKind::kSend:
      return send_operation(work, first, last);
    case WorkKind::kWrite:
      return write_operation(work, first, last);
    case WorkKind::kRead:
      return Operation::kReadRequest;
    case WorkKind::kCompareSwap:
      return Operation::kCompareSwap;
    case WorkKind::kFetchAdd:
      return Operation::kFetchAdd;
  }
  return Operation::kSendOnly;
}

work::MessageEnd end_of(const wire::Packet& packet) {
  const wire::Headers headers = wire::layout_of(packet.opcode).headers;
  work::MessageEnd end;
  end.has_immediate = (headers & wire::kImmediate) != 0;
  end.invalidates = (headers & wire::kIeth) != 0;
  end.solicited = packet.solicited;
  end.immediate = packet.immediate;
  end.invalidated = packet.invalidate;
  return end;
}

std::uint32_t packets_for(std::uint64_t length, std::size_t path_mtu) {
  const std::uint64_t count = (length + path_mtu - 1) / path_mtu;
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(count, 1));
}

bool right_size(const wire::Packet& packet, std::size_t path_mtu) {
  const bool full = wire::layout_of(packet.opcode).payload == wire::Payload::kFull;
  return full ? packet.payload.size() == path_mtu : packet.payload.size() <= path_mtu;
}

std::size_t write_packet(const wire::Packet& packet, work::LocalMemory& memory,
                         std::span<const work::Segment> sges, std::uint64_t offset,
                         std::size_t payload, std::span<std::byte> out) {
  const std::size_t headers = wire::header_bytes(packet);
  const std::size_t padding = wire::padding_of(payload);
  wire::write_headers(packet, payload, out.data());
  if (payload != 0 && !memory.gather(sges, offset, out.subspan(headers, payload))) return 0;
  std::memset(out.data() + headers + payload, 0, padding);
  return headers + payload + padding;
}

wire::Packet answer_packet(const Settings& settings, Operation operation, Psn psn,
                           std::uint32_t message_number) {
  wire::Packet packet;
  packet.opcode = opcode_of(settings.kind, operation);
  packet.pkey = settings.pkey;
  packet.destination = settings.destination;
  packet.psn = psn;
  packet.end_to_end_context = settings.context;
  packet.syndrome = kSyndromeAck | kNoCredits;
  packet.message_number = message_number;
  return packet;
}

std::size_t write_status(const Settings& settings, Psn psn, std::uint8_t syndrome,
                         std::uint32_t message_number, std::span<std::byte> out) {
  wire::Packet packet = answer_packet(settings, Operation::kAcknowledge, psn, message_number);
  packet.syndrome = syndrome;
  wire::write_headers(packet, 0, out.data());
  return wire::header_bytes(packet);
}

}  // namespace weft::transport
