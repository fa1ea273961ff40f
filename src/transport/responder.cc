// SPDX-License-Identifier: BSD-2-Clause
// Which requests are executed, in which order, and what is the peer told?
#include "transport/responder.h"

#include <algorithm>
#include <utility>

#include "packets.h"

namespace weft::transport {

using wire::Operation;
using work::RequestVerdict;

namespace {

bool is_atomic(Operation operation) {
  return operation == Operation::kCompareSwap || operation == Operation::kFetchAdd;
}

}  // namespace

void Responder::take(const wire::Packet& request, Time now) {
  const bool of_this_kind = wire::transport_of(request.opcode) == settings_.kind;
  if (!of_this_kind || !wire::layout_of(request.opcode).request) {
    settings_.stats->add(Stat::kOutOfSequence);
    return;
  }
  const bool resync = wire::operation_of(request.opcode) == Operation::kResync;
  if (resync && !request.psn.before(expected_)) return resynchronise(request);
  if (request.psn.before(expected_)) return take_again(request);
  if (refusing_) {
    settings_.stats->add(Stat::kOutOfSequence);
    if (request.psn == expected_) nak_ = refusal_;  // the NAK was lost
    return;
  }
  if (request.psn != expected_) return take_early(request, now);
  not_ready_ = gap_reported_ = false;
  early_.arrived(request.psn, now);
  carry_out(request, now);
  take_kept(now);
  early_.ask(now);
}

void Responder::carry_out(const wire::Packet& request, Time now) {
  const RequestVerdict verdict = execute(request);
  if (!verdict.ok()) return refuse(verdict);
  if (answers_.ends_with(request.psn)) return;
  if (request.ack_request) ack_owed_ = true;
  unanswered_since_ = std::min(unanswered_since_, now);
}

void Responder::advance(std::uint32_t count, bool ends_message) {
  expected_ = expected_.after(static_cast<std::int32_t>(count));
  early_.advance(expected_);
  if (ends_message) message_number_ = (message_number_ + 1) & Psn::kMask;
}

RequestVerdict Responder::execute(const wire::Packet& request) {
  const Operation operation = wire::operation_of(request.opcode);
  const bool fits = message_.fits(request) || (resumed_ && operation == Operation::kReadRequest);
  if (!fits || !right_size(request, settings_.path_mtu)) return work::kInvalidRequest;
  if ((wire::layout_of(request.opcode).headers & wire::kXrceth) != 0) {
    if (const RequestVerdict known = judge_shared_receive(request); !known.ok()) return known;
  }
  if (is_send(operation) || is_write(operation)) return take_message(request);
  if (operation == Operation::kReadRequest) return take_read(request);
  if (is_atomic(operation)) return take_atomic(request);
  return work::kInvalidRequest;
}

// Each packet names a shared receive queue; all of a message the same one.
RequestVerdict Responder::judge_shared_receive(const wire::Packet& request) {
  if (!wire::layout_of(request.opcode).starts) {
    return request.shared_receive == shared_receive_ ? RequestVerdict{} : work::kInvalidRequest;
  }
  shared_receive_ = request.shared_receive;
  return target_.may_use(shared_receive_);
}

RequestVerdict Responder::take_message(const wire::Packet& request) {
  const bool ends = wire::layout_of(request.opcode).ends;
  if (wire::layout_of(request.opcode).starts) message_first_ = request.psn;
  resumed_ = false;
  const RequestVerdict verdict = message_.take(request);
  if (!verdict.ok()) return verdict;
  advance(1, ends);
  if (ends) message_.end(request);
  return {};
}

RequestVerdict Responder::take_read(const wire::Packet& request) {
  if (!answers_.may_add() || request.reth.length > work::kMaxMessage) return work::kInvalidRequest;
  ExecutedRequest read;
  read.reads = true;
  read.memory = memory_of(request);
  const RequestVerdict allowed = target_.may_access(Access::kRemoteRead, read.memory);
  // Of reliable datagrams it is accepted, and fails by itself (write_lost_read()).
  if (allowed.kind == RequestVerdict::Kind::kOperational && datagrams()) read.lost = allowed;
  if (!allowed.ok() && read.lost.ok()) return allowed;
  read.range = {request.psn, packets_for(request.reth.length, settings_.path_mtu)};
  advance(read.range.count, true);
  read.message_number = message_number_;
  answers_.add(read);
  return {};
}

RequestVerdict Responder::take_atomic(const wire::Packet& request) {
  if (!answers_.may_add()) return work::kInvalidRequest;
  ExecutedRequest change;
  change.range = {request.psn, 1};
  const bool compares = wire::operation_of(request.opcode) == Operation::kCompareSwap;
  const wire::AtomicEth& atomic = request.atomic;
  const RequestVerdict done = target_.atomic(
      compares, {atomic.address, atomic.key, atomic.swap_or_add, atomic.compare}, change.original);
  if (!done.ok()) return done;
  advance(1, true);
  change.message_number = message_number_;
  answers_.add(change);
  return {};
}

// If the peer does not know yet that a message was refused, it begins anew with that message. Reads
// before a message that has begun are asked for again before the rest of it.
Psn Responder::restart(Psn next, std::size_t path_mtu) {
  const Psn executed = refusing_ ? refused_from_ : expected_;
  settings_.path_mtu = path_mtu;
  resumed_ = message_.begun();
  expected_ = next;
  early_.forget(next);
  answers_.forget_reads();
  refusing_ = not_ready_ = gap_reported_ = ack_owed_ = false;
  nak_ = 0;
  unanswered_since_ = Time::max();
  return executed;
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
      return early_.forget(expected_);
    case RequestVerdict::Kind::kInvalid:
      break;
    case RequestVerdict::Kind::kAccess:
      code = Nak::kRemoteAccess;
      break;
    case RequestVerdict::Kind::kOperational:
      code = Nak::kRemoteOperational;
      break;
    case RequestVerdict::Kind::kGivenUp:
      code = Nak::kBeginAgain;
      break;
  }
  settings_.stats->add(Stat::kRefusedRequests);
  auto bits = static_cast<std::uint8_t>(code);
  if ((datagrams() || settings_.selective) && verdict.detail != 0) {
    if (code == Nak::kRemoteAccess) {
      bits = static_cast<std::uint8_t>(Nak::kRefusal) + (verdict.detail & 0xF);
    } else if (code == Nak::kInvalidRequest && !datagrams()) {
      bits = static_cast<std::uint8_t>(Nak::kInvalidByRule) + (verdict.detail & 7);
    }
  }
  nak_ = refusal_ = kSyndromeNak | bits;
  refused_from_ = message_.break_off() ? message_first_ : expected_;
  early_.forget(expected_);
  refusing_ = true;
}

// The peer knows which request was refused, and begins anew behind this number.
void Responder::resynchronise(const wire::Packet& request) {
  if (!refusing_) return;
  refusing_ = not_ready_ = gap_reported_ = false;
  nak_ = 0;
  expected_ = request.psn.after(1);
  early_.advance(expected_);
  ack_owed_ = true;
}

// Packets are missing before this one.
void Responder::take_early(const wire::Packet& request, Time now) {
  const bool reads = wire::operation_of(request.opcode) == Operation::kReadRequest;
  const PsnRange range{request.psn,
                       reads ? packets_for(request.reth.length, settings_.path_mtu) : 1};
  auto fate = EarlyPackets::Fate::kNoRoom;
  if (!not_ready_ && settings_.selective) fate = early_.take(request, range, expected_, now);
  switch (fate) {
    case EarlyPackets::Fate::kKept:
      settings_.stats->add(Stat::kOutOfOrderKept);
      return;
    case EarlyPackets::Fate::kDuplicate:
      settings_.stats->add(Stat::kDuplicateRequests);
      return;
    case EarlyPackets::Fate::kNoRoom:
      settings_.stats->add(Stat::kOutOfSequence);
      if (not_ready_ || settings_.selective || std::exchange(gap_reported_, true)) return;
      nak_ = kSyndromeNak;
      return;
  }
}

// The missing packets have arrived: those that were kept behind them are next.
void Responder::take_kept(Time now) {
  while (!early_.empty() && !refusing_ && !not_ready_) {
    const auto kept = early_.take_out(expected_);
    if (!kept) return;
    wire::Packet packet = kept->packet;
    packet.payload = kept->payload;
    if (packet.psn == expected_) carry_out(packet, now);
    ack_owed_ = true;
  }
}

// The request was executed already; its answer may have been lost.
void Responder::take_again(const wire::Packet& request) {
  settings_.stats->add(Stat::kDuplicateRequests);
  const Operation operation = wire::operation_of(request.opcode);
  if (operation == Operation::kReadRequest) return answers_.repeat_read(request);
  if (is_atomic(operation)) return answers_.repeat_atomic(request.psn);
  ack_owed_ = true;
}

// Values first, in their order: an acknowledgement covers all requests before it. Missing packets
// may be named at any time, followed by the acknowledgement that was asked for.
std::size_t Responder::next(std::span<std::byte> out) {
  if (const auto report = early_.next_report()) {
    return write_status(settings_, report->first, kSyndromeNak, report->count, out);
  }
  if (!answers_.empty()) {
    const AnswerQueue::Written answer = answers_.next(out);
    return answer.length != 0 ? answer.length : write_lost_read(answer, out);
  }
  if (nak_ != 0) {
    ack_owed_ = false;
    const std::uint8_t nak = std::exchange(nak_, std::uint8_t{0});
    return write_status(settings_, expected_, nak, message_number_, out);
  }
  if (!std::exchange(ack_owed_, false)) return 0;
  unanswered_since_ = Time::max();
  constexpr std::uint8_t kAck = kSyndromeAck | kNoCredits;
  return write_status(settings_, expected_.after(-1), kAck, message_number_, out);
}

// The request was in order, and others behind it have been executed since: of reliable datagrams it
// alone fails, and the numbers go on.
std::size_t Responder::write_lost_read(const AnswerQueue::Written& lost, std::span<std::byte> out) {
  if (!datagrams()) {
    refuse(lost.verdict);
    answers_.clear();
    nak_ = 0;
    ack_owed_ = false;
    return write_status(settings_, lost.psn, refusal_, message_number_, out);
  }
  const bool by_rule = lost.verdict.kind == RequestVerdict::Kind::kAccess;
  const std::uint32_t number =
      by_rule ? kReadLostByRule | lost.verdict.detail : message_number_ & ~kReadLostByRule;
  const auto code = static_cast<std::uint8_t>(Nak::kRemoteOperational);
  return write_status(settings_, lost.psn, kSyndromeNak | code, number, out);
}

}  // namespace weft::transport
