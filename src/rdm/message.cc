// SPDX-License-Identifier: BSD-2-Clause
// What stands before the bytes of a message?
#include "rdm/message.h"

#include <cstring>

#include "base/path_mtu.h"
#include "transport/settings.h"
#include "wire/endian.h"
#include "work/work.h"

namespace weft::rdm {
namespace {

constexpr std::uint8_t kHasData = 1;
constexpr std::uint8_t kWantsAck = 2;

}  // namespace

MessageHeader header_of(const link::SendRequest& request, bool whole) {
  MessageHeader header;
  header.kind = whole ? MessageKind::kEager : MessageKind::kRts;
  header.operation = request.operation;
  header.has_data = request.has_data;
  header.wants_ack = request.until_delivered || !whole;
  header.tag = request.tag;
  header.data = request.data;
  header.length = request.length;
  return header;
}

bool is_announced(bool write, std::span<const RemoteRange> ranges) {
  constexpr std::uint64_t kWholeRead = std::uint64_t{transport::kReadPart} * kLeastPathMtu;
  const std::uint64_t whole = write ? work::kMaxMessage : kWholeRead;
  return ranges.size() > 1 || (!ranges.empty() && ranges[0].length > whole);
}

MessageHeader announcement_of(bool write, std::span<const RemoteRange> ranges) {
  MessageHeader header;
  header.kind = MessageKind::kRangeBegin;
  header.tag = ranges.size();
  header.data = write ? 1 : 0;
  return header;
}

void write_header(const MessageHeader& header, std::byte* out) {
  std::memset(out, 0, kMessageHeader);
  wire::store<std::uint8_t>(out, static_cast<std::uint8_t>(header.kind));
  wire::store<std::uint8_t>(out + 1, static_cast<std::uint8_t>(header.operation));
  const unsigned flags = (header.has_data ? kHasData : 0U) | (header.wants_ack ? kWantsAck : 0U);
  wire::store<std::uint8_t>(out + 2, static_cast<std::uint8_t>(flags));
  wire::store<std::uint32_t>(out + 4, header.rendezvous_id);
  wire::store<std::uint64_t>(out + 8, header.tag);
  wire::store<std::uint64_t>(out + 16, header.data);
  if (header.kind != MessageKind::kAtomic)
    return wire::store<std::uint64_t>(out + 24, header.length);
  wire::store<std::uint8_t>(out + 24, static_cast<std::uint8_t>(header.action.form));
  wire::store<std::uint8_t>(out + 25, static_cast<std::uint8_t>(header.action.op));
  wire::store<std::uint8_t>(out + 26, static_cast<std::uint8_t>(header.action.type));
  wire::store<std::uint32_t>(out + 28, static_cast<std::uint32_t>(header.length));
}

MessageHeader read_header(const std::byte* bytes) {
  MessageHeader header;
  header.kind = static_cast<MessageKind>(wire::load<std::uint8_t>(bytes));
  header.operation = static_cast<link::MessageOperation>(wire::load<std::uint8_t>(bytes + 1));
  const auto flags = wire::load<std::uint8_t>(bytes + 2);
  header.has_data = (flags & kHasData) != 0;
  header.wants_ack = (flags & kWantsAck) != 0;
  header.rendezvous_id = wire::load<std::uint32_t>(bytes + 4);
  header.tag = wire::load<std::uint64_t>(bytes + 8);
  header.data = wire::load<std::uint64_t>(bytes + 16);
  if (header.kind != MessageKind::kAtomic) {
    header.length = wire::load<std::uint64_t>(bytes + 24);
    return header;
  }
  header.action.form = static_cast<AtomicForm>(wire::load<std::uint8_t>(bytes + 24));
  header.action.op = static_cast<AtomicOp>(wire::load<std::uint8_t>(bytes + 25));
  header.action.type = static_cast<AtomicType>(wire::load<std::uint8_t>(bytes + 26));
  header.length = wire::load<std::uint32_t>(bytes + 28);
  return header;
}

std::size_t write_ranges(std::span<const RemoteRange> ranges, std::byte* out) {
  for (const RemoteRange& range : ranges) {
    wire::store<std::uint64_t>(out, range.address);
    wire::store<std::uint64_t>(out + 8, range.length);
    wire::store<std::uint64_t>(out + 16, range.key.v);
    out += kRange;
  }
  return ranges.size() * kRange;
}

RemoteRange read_range(const std::byte* bytes) {
  return {wire::load<std::uint64_t>(bytes), wire::load<std::uint64_t>(bytes + 8),
          RegionKey{wire::load<std::uint64_t>(bytes + 16)}};
}

}  // namespace weft::rdm
