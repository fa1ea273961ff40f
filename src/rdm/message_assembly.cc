// SPDX-License-Identifier: BSD-2-Clause
// Where are the bytes of a message of which packets are still missing?
#include "message_assembly.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "os/user_memory.h"

namespace weft::rdm {

using work::RequestVerdict;

namespace {

// Messages of other kinds than kEager that may take several packets.
constexpr std::size_t kLongestWithRanges =
    kMessageHeader + link::kMaxLinkSges * kRange + 2 * kMaxAtomicBytes;
static_assert(kLongestWithRanges <= kGuaranteedMessage);

// Bytes that a message of several packets may have, of which this is the first one; 0: none.
std::size_t length_promised_by(std::span<const std::byte> first) {
  const MessageHeader header = read_header(first.data());
  if (header.kind == MessageKind::kEager) {
    const bool allowed = header.length <= kLongestMessage - kMessageHeader;
    return allowed ? kMessageHeader + header.length : 0;
  }
  if (header.kind == MessageKind::kAtomic || header.kind == MessageKind::kRangeBegin) {
    return kLongestWithRanges;
  }
  if (header.kind == MessageKind::kResult) return kMessageHeader + kMaxAtomicBytes;
  // It filled one packet when it was written; the packets may have become smaller since.
  if (header.kind == MessageKind::kCoalesced) return wire::kMaxReliableDatagramMtu;
  return first.size();
}

}  // namespace

void PlacedMessage::put(std::span<const std::byte> bytes) {
  const std::uint64_t room = wanted - std::min(wanted, there);
  const std::size_t taken = std::min<std::uint64_t>(bytes.size(), room);
  if (!os::scatter({sges.data(), count}, bytes.data(), taken, there)) error = EFAULT;
  there += bytes.size();
}

// Most messages are one packet: they are read where it lies, if that is where it has just arrived.
RequestVerdict MessageAssembly::add(std::span<const std::byte> bytes) {
  if (is_empty()) {
    if (const RequestVerdict room = begin(bytes); !room.ok()) return room;
  }
  if (message_.size() + packet_.size() + bytes.size() > promised_) return work::kInvalidRequest;
  keep_packet();
  packet_ = bytes;
  if (bytes.data() != arrived_at_) keep_packet();
  return {};
}

// Memory for all of a message of several packets is taken when it begins: if each packet took its
// own, messages that have begun could wait for each other without end.
RequestVerdict MessageAssembly::begin(std::span<const std::byte> first) {
  promised_ = first.size();
  if (first.size() < path_mtu_ || first.size() < kMessageHeader) return {};
  const std::size_t length = length_promised_by(first);
  if (length == 0) return work::kInvalidRequest;
  if (length <= promised_) return {};
  if (length <= kGuaranteedMessage) {
    messages_.charge(length);
  } else if (!messages_.take(length)) {
    return {RequestVerdict::Kind::kNotReady, 0};
  }
  promised_ = reserved_ = length;
  message_.reserve(length);
  return {};
}

void MessageAssembly::keep_packet() {
  message_.insert(message_.end(), packet_.begin(), packet_.end());
  packet_ = {};
}

std::span<const std::byte> MessageAssembly::message() {
  if (message_.empty()) return packet_;
  keep_packet();
  return message_;
}

void MessageAssembly::clear() {
  if (message_.capacity() != 0) std::vector<std::byte>().swap(message_);
  messages_.give(std::exchange(reserved_, 0));
  packet_ = {};
}

void MessageAssembly::place(std::span<const LocalRange> sges, std::uint64_t length, void* cookie) {
  placed_ = std::make_unique<PlacedMessage>();
  placed_->cookie = cookie;
  placed_->count = sges.size();
  std::copy(sges.begin(), sges.end(), placed_->sges.begin());
  placed_->wanted = length;
}

}  // namespace weft::rdm
