// SPDX-License-Identifier: BSD-2-Clause
// How does work become packets that are not acknowledged?
#include "transport/unreliable_sender.h"

#include <algorithm>
#include <utility>

#include "packets.h"

namespace weft::transport {

using work::CompletionStatus;
using work::Work;

namespace {

std::optional<CompletionStatus> refusal_of(const Work& work) {
  if (work.kind > work::WorkKind::kWrite || work.invalidates)
    return CompletionStatus::kLocalOperation;
  if (work.length > work::kMaxMessage) return CompletionStatus::kLocalLength;
  return std::nullopt;
}

}  // namespace

void UnreliableSender::post(const Work& work) {
  if (failed_) return sink_.ended({work.cookie, CompletionStatus::kFlushed, 0});
  Message& message = queue_.emplace_back();
  message.work = work;
  message.sge_count = std::min(work.sges.size(), work::kMaxWorkSges);
  std::copy_n(work.sges.begin(), message.sge_count, message.sges.begin());
  message.work.sges = {};
  message.refusal = refusal_of(work);
  end_refused();
}

// The first one's; the sink may post from within ended().
void UnreliableSender::end_first(CompletionStatus status) {
  void* const cookie = queue_.front().work.cookie;
  queue_.pop_front();
  sink_.ended({cookie, status, 0});
}

// So that the first one, if any, has a packet.
void UnreliableSender::end_refused() {
  while (!queue_.empty() && queue_.front().refusal) end_first(*queue_.front().refusal);
}

wire::Packet UnreliableSender::packet_of(const Message& message, bool last) const {
  const Work& work = message.work;
  const bool first = message.sent == 0;
  wire::Packet packet;
  packet.opcode = opcode_of(settings_.kind, operation_of(work, first, last));
  packet.solicited = work.solicited && last;
  packet.pkey = settings_.pkey;
  packet.destination = settings_.destination;
  packet.psn = next_;
  packet.immediate = work.immediate;
  packet.reth = {work.address, work.key, static_cast<std::uint32_t>(work.length)};
  return packet;
}

std::size_t UnreliableSender::next(std::span<std::byte> out) {
  std::size_t length = 0;
  while (length == 0 && busy()) length = write_next(out);
  return length;
}

// 0 when the first work ends without a packet.
std::size_t UnreliableSender::write_next(std::span<std::byte> out) {
  Message& message = queue_.front();
  const std::uint64_t left = message.work.length - message.sent;
  const std::size_t payload = std::min<std::uint64_t>(left, settings_.path_mtu);
  const bool last = payload == left;
  const std::size_t length =
      write_packet(packet_of(message, last), memory_, {message.sges.data(), message.sge_count},
                   message.sent, payload, out);
  if (length != 0) {
    next_ = next_.after(1);
    message.sent += payload;
  }
  if (last || length == 0) {
    end_first(length != 0 ? CompletionStatus::kSuccess : CompletionStatus::kLocalProtection);
    end_refused();
  }
  return length;
}

void UnreliableSender::fail(CompletionStatus status) {
  if (failed_) return;
  failed_ = true;
  for (auto all = std::exchange(queue_, {}); !all.empty(); all.pop_front()) {
    const Message& message = all.front();
    sink_.ended({message.work.cookie, message.refusal.value_or(status), 0});
    if (!message.refusal) status = CompletionStatus::kFlushed;
  }
}

}  // namespace weft::transport
