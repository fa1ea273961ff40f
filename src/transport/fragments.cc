// SPDX-License-Identifier: BSD-2-Clause
// What becomes of a packet that is larger than the path carries?
#include "transport/fragments.h"

#include <algorithm>
#include <cstring>

#include "wire/endian.h"

namespace weft::transport {
namespace {

constexpr std::size_t kHeader = 12;
// Those of the largest packet on the narrowest way.
constexpr std::size_t kMostPieces = 40;
constexpr std::size_t kLongest = wire::kMaxHeaderBytes + wire::kMaxReliableDatagramMtu;

// A fragment is no reliable datagram, whose payload may be larger than others.
constexpr std::size_t room_on(std::size_t path_mtu) {
  constexpr std::size_t kHeaders = wire::kBthBytes + wire::bytes_of(wire::kDeth) + kHeader;
  return std::min(path_mtu + wire::kMaxHeaderBytesOfPayload - kHeaders,
                  wire::kMaxPathMtu - kHeader);
}
static_assert(room_on(wire::kMaxReliableDatagramMtu) + kHeader <= wire::kMaxPathMtu);
static_assert((kLongest + room_on(256) - 1) / room_on(256) <= kMostPieces);
static_assert(room_on(256) % 4 == 0);

constexpr std::size_t step_of(std::size_t length, std::size_t count) {
  return ((length + count - 1) / count + 3) & ~std::size_t{3};
}

}  // namespace

Fragmenter::Fragmenter(const Settings& settings, std::uint32_t first)
    : context_(settings.context & Psn::kMask), number_(first) {
  header_.opcode = opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
  header_.pkey = settings.pkey;
  header_.destination = settings.destination;
  header_.queue_key = settings.queue_key;
  header_.source = settings.source;
}

void Fragmenter::cut(std::span<const std::byte> packet, std::size_t path_mtu) {
  packet_.assign(packet.begin(), packet.end());
  count_ = (packet.size() + room_on(path_mtu) - 1) / room_on(path_mtu);
  index_ = 0;
  ++number_;
}

std::size_t Fragmenter::next(std::span<std::byte> out) {
  if (!has_more()) return 0;
  const std::size_t step = step_of(packet_.size(), count_);
  const std::size_t begin = index_ * step;
  const std::size_t bytes = std::min(step, packet_.size() - begin);
  const std::size_t headers = wire::header_bytes(header_);
  wire::write_headers(header_, kHeader + bytes, out.data());
  header_.psn = header_.psn.after(1);
  std::byte* at = out.data() + headers;
  wire::store<std::uint32_t>(at, static_cast<std::uint32_t>(index_ << 24) | context_);
  wire::store<std::uint32_t>(at + 4, number_);
  wire::store<std::uint16_t>(at + 8, static_cast<std::uint16_t>(count_));
  wire::store<std::uint16_t>(at + 10, static_cast<std::uint16_t>(packet_.size()));
  std::memcpy(at + kHeader, packet_.data() + begin, bytes);
  const std::size_t padding = wire::padding_of(kHeader + bytes);
  std::memset(at + kHeader + bytes, 0, padding);
  ++index_;
  return headers + kHeader + bytes + padding;
}

std::uint32_t context_of_fragment(std::span<const std::byte> payload) {
  return payload.size() < kHeader ? 0 : wire::load<std::uint32_t>(payload.data()) & Psn::kMask;
}

std::optional<std::span<const std::byte>> Reassembler::take(std::span<const std::byte> payload) {
  if (payload.size() < kHeader) return std::nullopt;
  const std::size_t index = wire::load<std::uint8_t>(payload.data());
  const auto number = wire::load<std::uint32_t>(payload.data() + 4);
  const std::size_t count = wire::load<std::uint16_t>(payload.data() + 8);
  const std::size_t length = wire::load<std::uint16_t>(payload.data() + 10);
  const std::span<const std::byte> bytes = payload.subspan(kHeader);
  if (index >= count || count > kMostPieces || length > kLongest) return std::nullopt;
  const std::size_t step = step_of(length, count);
  const std::size_t begin = index * step;
  if (begin >= length || bytes.size() != std::min(step, length - begin)) return std::nullopt;
  if (packets_.empty()) {
    if (!grow(kAtOnce * sizeof(Packet))) return std::span<const std::byte>();
    packets_.resize(kAtOnce);
  }
  Packet& packet = packets_[number % kAtOnce];
  if (packet.number != number || packet.count != count || packet.length != length) {
    const std::size_t room = packet.bytes.capacity();
    const std::size_t needed = length + wire::kIcrcBytes;
    if (needed > room && !grow(needed - room)) return std::span<const std::byte>();
    packet.bytes.clear();
    packet.bytes.reserve(needed);
    packet.number = number;
    packet.count = count;
    packet.length = length;
    packet.missing = (std::uint64_t{1} << count) - 1;
    packet.bytes.resize(length + wire::kIcrcBytes);
  }
  std::memcpy(packet.bytes.data() + begin, bytes.data(), bytes.size());
  const std::uint64_t before = packet.missing;
  packet.missing &= ~(std::uint64_t{1} << index);
  // One that is whole already has come again.
  return before != 0 && packet.missing == 0 ? packet.bytes : std::span<const std::byte>();
}

bool Reassembler::grow(std::size_t bytes) {
  if (share_ != nullptr && !share_->take(bytes)) return false;
  taken_ += bytes;
  return true;
}

void Reassembler::trim() {
  std::vector<Packet>().swap(packets_);
  if (share_ != nullptr) share_->give(taken_);
  taken_ = 0;
}

}  // namespace weft::transport
