// SPDX-License-Identifier: BSD-2-Clause
// How is a request carried out whose turn it is?
#include "transport/responder.h"

#include <algorithm>

#include "packets.h"
#include "transport/work.h"

namespace weft::transport {

using wire::Operation;

namespace {

bool is_atomic(Operation operation) {
  return operation == Operation::kCompareSwap || operation == Operation::kFetchAdd;
}

constexpr RequestVerdict kInvalid{RequestVerdict::Kind::kInvalid, 0};

}  // namespace

Responder::~Responder() {
  forget_early();
  if (message_ == Message::kSend) target_.message_breaks();
}

void Responder::take(const wire::Packet& request, Time now) {
  const bool of_this_kind = wire::transport_of(request.opcode) == settings_.kind;
  if (!of_this_kind || !wire::layout_of(request.opcode).request) {
    ++counts_.dropped;
    return;
  }
  const bool resync = wire::operation_of(request.opcode) == Operation::kResync;
  if (resync && !request.psn.before(expected_)) return resynchronise(request);
  if (request.psn.before(expected_)) return take_again(request);
  if (refusing_) {
    ++counts_.dropped;
    if (request.psn == expected_) nak_ = refusal_;  // it has not heard of that
    return;
  }
  if (request.psn != expected_) return take_early(request, now);
  not_ready_ = told_ = false;
  if (holes_.has(request.psn)) filled(now);
  carry_out(request, now);
  take_kept(now);
  ask(now);
}

void Responder::carry_out(const wire::Packet& request, Time now) {
  const wire::Layout& layout = wire::layout_of(request.opcode);
  const RequestVerdict verdict = execute(request, layout);
  if (!verdict.ok()) return refuse(verdict);
  const bool answered = !answers_.empty() && answers_.back().range.first == request.psn;
  if (answered) return;
  if (request.ack_request) ack_owed_ = true;
  unanswered_since_ = std::min(unanswered_since_, now);
}

void Responder::advance(std::uint32_t count, bool ends_message) {
  expected_ = expected_.after(static_cast<std::int32_t>(count));
  if (highest_.before(expected_)) highest_ = expected_;
  holes_.forget_before(expected_);
  if (ends_message) message_number_ = (message_number_ + 1) & Psn::kMask;
}

bool Responder::in_sequence(const wire::Packet& request, const wire::Layout& layout) const {
  const Operation operation = wire::operation_of(request.opcode);
  if (layout.starts) return message_ == Message::kNone;
  return message_ == (is_send(operation) ? Message::kSend : Message::kWrite);
}

bool Responder::right_size(const wire::Packet& request, const wire::Layout& layout) const {
  const std::size_t length = request.payload.size();
  return layout.payload == wire::Payload::kFull ? length == settings_.path_mtu
                                                : length <= settings_.path_mtu;
}

RequestVerdict Responder::execute(const wire::Packet& request, const wire::Layout& layout) {
  if (!in_sequence(request, layout) || !right_size(request, layout)) return kInvalid;
  if ((layout.headers & wire::kXrceth) != 0) {
    if (const RequestVerdict known = judge_shared_receive(request, layout); !known.ok())
      return known;
  }
  const Operation operation = wire::operation_of(request.opcode);
  if (is_send(operation)) return take_send(request, layout);
  if (is_write(operation)) return take_write(request, layout);
  if (operation == Operation::kReadRequest) return take_read(request);
  if (is_atomic(operation)) return take_atomic(request);
  return kInvalid;
}

// Each packet names it; all of a message the same one.
RequestVerdict Responder::judge_shared_receive(const wire::Packet& request,
                                               const wire::Layout& layout) {
  if (!layout.starts)
    return request.shared_receive == shared_receive_ ? RequestVerdict{} : kInvalid;
  shared_receive_ = request.shared_receive;
  return target_.may_use(shared_receive_);
}

RequestVerdict Responder::take_send(const wire::Packet& request, const wire::Layout& layout) {
  if (layout.starts) {
    if (const RequestVerdict verdict = target_.message_begins(); !verdict.ok()) return verdict;
    message_ = Message::kSend;
  }
  if ((layout.headers & wire::kIeth) != 0) {
    const RequestVerdict allowed = target_.may_invalidate(request.invalidate);
    if (!allowed.ok()) return allowed;
  }
  const RequestVerdict verdict = target_.message_goes_on(request.payload);
  if (!verdict.ok()) {
    const bool not_begun = layout.starts && verdict.kind == RequestVerdict::Kind::kNotReady;
    if (not_begun) message_ = Message::kNone;
    return verdict;
  }
  advance(1, layout.ends);
  if (!layout.ends) return {};
  message_ = Message::kNone;
  target_.message_ends(request);
  return {};
}

// The whole length is checked at the beginning, so that what is refused touches no byte.
RequestVerdict Responder::take_write(const wire::Packet& request, const wire::Layout& layout) {
  const wire::Reth memory = layout.starts ? request.reth : memory_;
  if (memory.length > kMaxMessage) return kInvalid;
  const std::uint64_t before = layout.starts ? 0 : received_;
  const std::uint64_t length = request.payload.size();
  const std::uint64_t end = before + length;
  if (layout.ends ? end != memory.length : end >= memory.length) return kInvalid;
  if (layout.starts) {
    const RequestVerdict allowed = target_.may_access(Access::kRemoteWrite, memory);
    if (!allowed.ok()) return allowed;
  }
  const bool tells = (layout.headers & wire::kImmediate) != 0;
  if (tells) {
    if (const RequestVerdict ready = target_.may_tell(); !ready.ok()) return ready;
  }
  if (length != 0) {
    const RequestVerdict done = target_.write(memory, before, request.payload);
    if (!done.ok()) return done;
  }
  memory_ = memory;
  received_ = end;
  message_ = layout.ends ? Message::kNone : Message::kWrite;
  advance(1, layout.ends);
  if (layout.ends) target_.written(memory, request);
  return {};
}

bool Responder::narrow(std::size_t path_mtu) {
  return path_mtu < settings_.path_mtu && resize(path_mtu);
}

bool Responder::widen(std::size_t path_mtu) {
  return path_mtu > settings_.path_mtu && resize(path_mtu);
}

bool Responder::resize(std::size_t path_mtu) {
  if (message_ != Message::kNone) return false;
  if (!answers_.empty() || !kept_.empty()) return false;
  settings_.path_mtu = path_mtu;
  remembered_.clear();  // all has been answered, and what comes late would be cut differently
  return true;
}

std::uint32_t Responder::packets_for(std::uint64_t length) const {
  return transport::packets_for(length, settings_.path_mtu);
}

RequestVerdict Responder::take_read(const wire::Packet& request) {
  if (!may_ask() || request.reth.length > kMaxMessage) return kInvalid;
  Value value;
  value.reads = true;
  const RequestVerdict allowed = target_.may_access(Access::kRemoteRead, request.reth);
  // Of reliable datagrams it is accepted, and fails by itself (write_lost_read()).
  value.lost = allowed.kind == RequestVerdict::Kind::kOperational && datagrams();
  if (!allowed.ok() && !value.lost) return allowed;
  value.range = {request.psn, packets_for(request.reth.length)};
  value.memory = request.reth;
  advance(value.range.count, true);
  value.message_number = message_number_;
  remember(value);
  return {};
}

RequestVerdict Responder::take_atomic(const wire::Packet& request) {
  if (!may_ask()) return kInvalid;
  Value value;
  value.range = {request.psn, 1};
  const bool compares = wire::operation_of(request.opcode) == Operation::kCompareSwap;
  const RequestVerdict done = target_.atomic(compares, request.atomic, value.original);
  if (!done.ok()) return done;
  advance(1, true);
  value.message_number = message_number_;
  remember(value);
  return {};
}

// The peer has no more in flight than both ends agreed on.
bool Responder::may_ask() const {
  const auto asked = std::count_if(answers_.begin(), answers_.end(),
                                   [](const Value& value) { return !value.repeated; });
  return asked < static_cast<std::ptrdiff_t>(settings_.max_reads_of_peer);
}

void Responder::remember(const Value& value) {
  answers_.push_back(value);
  if (settings_.max_reads_of_peer == 0) return;
  if (remembered_.size() >= settings_.max_reads_of_peer) remembered_.erase(remembered_.begin());
  remembered_.push_back(value);
}

// A connection is over; of reliable datagrams the request is, and the peer will agree on new
// numbers. A message that had begun is forgotten.
void Responder::refuse(const RequestVerdict& verdict) {
  Nak code = Nak::kInvalidRequest;
  switch (verdict.kind) {
    case RequestVerdict::Kind::kYes:
      return;
    case RequestVerdict::Kind::kNotReady:
      nak_ = static_cast<std::uint8_t>(kSyndromeRnr | (settings_.rnr_timer & 0x1F));
      not_ready_ = true;
      forget_early();
      highest_ = expected_;
      return;
    case RequestVerdict::Kind::kInvalid:
      break;
    case RequestVerdict::Kind::kAccess:
      code = Nak::kRemoteAccess;
      break;
    case RequestVerdict::Kind::kOperational:
      code = Nak::kRemoteOperational;
      break;
  }
  ++counts_.refused;
  auto bits = static_cast<std::uint8_t>(code);
  if (datagrams() && code == Nak::kRemoteAccess && verdict.detail != 0) {
    bits = static_cast<std::uint8_t>(Nak::kRefusal) + (verdict.detail & 0xF);
  }
  nak_ = refusal_ = kSyndromeNak | bits;
  if (message_ == Message::kSend) target_.message_breaks();
  message_ = Message::kNone;
  forget_early();
  refusing_ = true;
}

// The peer knows now what was refused, and begins anew behind this number.
void Responder::resynchronise(const wire::Packet& request) {
  if (!refusing_) return;
  refusing_ = not_ready_ = told_ = false;
  nak_ = 0;
  expected_ = highest_ = request.psn.after(1);
  ack_owed_ = true;
}

}  // namespace weft::transport
