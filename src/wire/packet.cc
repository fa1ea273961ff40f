// SPDX-License-Identifier: BSD-2-Clause
// What does a RoCEv2 packet say, and how is one written? (IBTA 9.2 to 9.6, annexes A14, A17, A19)
#include "wire/packet.h"

#include <algorithm>
#include <bit>

#include "wire/endian.h"

namespace weft::wire {
namespace {

constexpr std::uint8_t kSolicited = 0x80;
constexpr std::uint8_t kMigrated = 0x40;
constexpr std::uint8_t kVersionMask = 0x0F;
constexpr unsigned kPadShift = 4;
constexpr std::uint8_t kFecn = 0x80;
constexpr std::uint8_t kBecn = 0x40;
constexpr std::uint8_t kAckRequest = 0x80;

void read_bth(const std::byte* at, Packet& packet) {
  packet.opcode = load<std::uint8_t>(at);
  const std::uint8_t flags = load<std::uint8_t>(at + 1);
  packet.solicited = (flags & kSolicited) != 0;
  packet.migrated = (flags & kMigrated) != 0;
  packet.pkey = load<std::uint16_t>(at + 2);
  packet.fecn = (load<std::uint8_t>(at + 4) & kFecn) != 0;
  packet.becn = (load<std::uint8_t>(at + 4) & kBecn) != 0;
  packet.destination = load24(at + 5);
  packet.ack_request = (load<std::uint8_t>(at + 8) & kAckRequest) != 0;
  packet.psn = Psn(load24(at + 9));
}

// Reads one header behind the base header.
void read_extended(Headers header, const std::byte* here, Packet& packet) {
  switch (header) {
    case kRdeth:
      packet.end_to_end_context = load24(here + 1);
      return;
    case kDeth:
      packet.queue_key = load<std::uint32_t>(here);
      packet.source = load24(here + 5);
      return;
    case kXrceth:
      packet.shared_receive = load24(here + 1);
      return;
    case kFeth:
      packet.flush = load<std::uint32_t>(here);
      return;
    case kReth:
      packet.reth = {load<std::uint64_t>(here), load<std::uint32_t>(here + 8),
                     load<std::uint32_t>(here + 12)};
      return;
    case kAtomicEth:
      packet.atomic = {load<std::uint64_t>(here), load<std::uint32_t>(here + 8),
                       load<std::uint64_t>(here + 12), load<std::uint64_t>(here + 20)};
      return;
    case kImmediate:
      packet.immediate = load<std::uint32_t>(here);
      return;
    case kIeth:
      packet.invalidate = load<std::uint32_t>(here);
      return;
    case kAeth:
      packet.syndrome = load<std::uint8_t>(here);
      packet.message_number = load24(here + 1);
      return;
    case kAtomicAckEth:
      packet.original = load<std::uint64_t>(here);
      return;
    default:
      return;
  }
}

void write_bth(const Packet& packet, std::size_t padding, std::byte* out) {
  store<std::uint8_t>(out, packet.opcode);
  store<std::uint8_t>(
      out + 1, static_cast<std::uint8_t>((packet.solicited ? kSolicited : 0) |
                                         (packet.migrated ? kMigrated : 0) | padding << kPadShift));
  store<std::uint16_t>(out + 2, packet.pkey);
  store<std::uint8_t>(
      out + 4, static_cast<std::uint8_t>((packet.fecn ? kFecn : 0) | (packet.becn ? kBecn : 0)));
  store24(out + 5, packet.destination);
  store<std::uint8_t>(out + 8, packet.ack_request ? kAckRequest : 0);
  store24(out + 9, packet.psn.value());
}

// Writes one header behind the base header.
void write_extended(Headers header, const Packet& packet, std::byte* here) {
  switch (header) {
    case kRdeth:
      return store<std::uint32_t>(here, packet.end_to_end_context & Psn::kMask);
    case kDeth:
      store<std::uint32_t>(here, packet.queue_key);
      return store<std::uint32_t>(here + 4, packet.source & Psn::kMask);
    case kXrceth:
      return store<std::uint32_t>(here, packet.shared_receive & Psn::kMask);
    case kFeth:
      return store<std::uint32_t>(here, packet.flush);
    case kReth:
      store<std::uint64_t>(here, packet.reth.address);
      store<std::uint32_t>(here + 8, packet.reth.key);
      return store<std::uint32_t>(here + 12, packet.reth.length);
    case kAtomicEth:
      store<std::uint64_t>(here, packet.atomic.address);
      store<std::uint32_t>(here + 8, packet.atomic.key);
      store<std::uint64_t>(here + 12, packet.atomic.swap_or_add);
      return store<std::uint64_t>(here + 20, packet.atomic.compare);
    case kImmediate:
      return store<std::uint32_t>(here, packet.immediate);
    case kIeth:
      return store<std::uint32_t>(here, packet.invalidate);
    case kAeth:
      store<std::uint8_t>(here, packet.syndrome);
      return store24(here + 1, packet.message_number);
    case kAtomicAckEth:
      return store<std::uint64_t>(here, packet.original);
    default:
      return;
  }
}

// Calls visit(header, offset) for each header of a mask, in the order in which they stand.
template <class Visit>
void for_each_header(Headers headers, const Visit& visit) {
  for (std::size_t offset = kBthBytes; headers != 0;) {
    const auto header = static_cast<Headers>(headers & -headers);
    visit(header, offset);
    offset += bytes_of_one(header);
    headers = static_cast<Headers>(headers ^ header);
  }
}

bool is_path_mtu(Transport transport, std::size_t length) {
  if (length < 256) return false;
  return transport == Transport::kReliableDatagram ? length % kReliableDatagramMtuUnit == 0
                                                   : std::has_single_bit(length);
}

bool fits(Transport transport, Payload payload, std::size_t length) {
  const std::size_t most = max_payload(transport, payload);
  if (length > most) return false;
  switch (payload) {
    case Payload::kFull:
      return is_path_mtu(transport, length);
    case Payload::kSome:
      return length >= 1;
    case Payload::kAny:
      return true;
    case Payload::kNone:
    case Payload::kEight:
    case Payload::kCnp:
      return length == most;
  }
  return false;
}

}  // namespace

Malformed parse(std::span<const std::byte> datagram, Packet& packet) {
  packet = {};
  if (datagram.size() < kBthBytes + kIcrcBytes) return Malformed::kTooShort;
  const std::byte* bytes = datagram.data();
  read_bth(bytes, packet);
  if ((load<std::uint8_t>(bytes + 1) & kVersionMask) != 0) return Malformed::kVersion;
  const Layout& layout = layout_of(packet.opcode);
  if (!layout.known) return Malformed::kUnknownOpcode;
  const std::size_t headers = kBthBytes + layout.header_bytes;
  const std::size_t padding = load<std::uint8_t>(bytes + 1) >> kPadShift & 3;
  if (datagram.size() < headers + padding + kIcrcBytes) return Malformed::kTooShort;
  for_each_header(layout.headers, [&](Headers header, std::size_t offset) {
    read_extended(header, bytes + offset, packet);
  });
  packet.payload = datagram.subspan(headers, datagram.size() - headers - padding - kIcrcBytes);
  if (padding != padding_of(packet.payload.size())) return Malformed::kPadding;
  const auto pad = datagram.subspan(headers + packet.payload.size(), padding);
  const bool zeros =
      std::all_of(pad.begin(), pad.end(), [](std::byte b) { return b == std::byte{}; });
  if (!zeros) return Malformed::kPadding;
  return fits(transport_of(packet.opcode), layout.payload, packet.payload.size())
             ? Malformed::kNone
             : Malformed::kPayload;
}

void write_headers(const Packet& packet, std::size_t payload, std::byte* out) {
  write_bth(packet, padding_of(payload), out);
  for_each_header(layout_of(packet.opcode).headers, [&](Headers header, std::size_t offset) {
    write_extended(header, packet, out + offset);
  });
}

}  // namespace weft::wire
