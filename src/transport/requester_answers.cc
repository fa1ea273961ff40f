// SPDX-License-Identifier: BSD-2-Clause
// What does an answer say about the work that was sent?
#include <algorithm>

#include "transport/requester.h"

namespace weft::transport {

using wire::Operation;
using work::CompletionStatus;

namespace {

CompletionStatus status_of(std::uint8_t code) {
  switch (static_cast<Nak>(code)) {
    case Nak::kSequence:
    case Nak::kInvalidRequest:
    case Nak::kInvalidByRule:
    case Nak::kBeginAgain:
      return CompletionStatus::kRemoteInvalidRequest;
    case Nak::kRemoteAccess:
    case Nak::kRefusal:
      return CompletionStatus::kRemoteAccess;
    case Nak::kRemoteOperational:
      return CompletionStatus::kRemoteOperation;
  }
  return code > static_cast<std::uint8_t>(Nak::kRefusal) ? CompletionStatus::kRemoteAccess
                                                         : CompletionStatus::kRemoteInvalidRequest;
}

std::uint8_t detail_of(std::uint8_t code, bool selective) {
  constexpr auto kRefusal = static_cast<std::uint8_t>(Nak::kRefusal);
  constexpr auto kInvalidByRule = static_cast<std::uint8_t>(Nak::kInvalidByRule);
  if (code >= kRefusal) return code - kRefusal;
  return selective && code > kInvalidByRule ? code - kInvalidByRule : 0;
}

}  // namespace

void Requester::take(const wire::Packet& response, Time now) {
  const bool of_this_kind = wire::transport_of(response.opcode) == settings_.kind;
  if (failed_ || !response.psn.before(in_flight_.next()) || !of_this_kind) {
    settings_.stats->add(Stat::kUnexpectedResponses);
    return;
  }
  note_received();
  const Operation operation = wire::operation_of(response.opcode);
  if (packetizer_.paused() && operation != Operation::kAtomicAcknowledge) return;
  if (operation == Operation::kAcknowledge) return take_acknowledge(response, now);
  if (operation == Operation::kAtomicAcknowledge) return take_atomic(response, now);
  const bool read =
      operation >= Operation::kReadResponseFirst && operation <= Operation::kReadResponseOnly;
  if (read) return take_read(response, now);
  settings_.stats->add(Stat::kUnexpectedResponses);
}

void Requester::take_acknowledge(const wire::Packet& response, Time now) {
  const auto code = static_cast<std::uint8_t>(response.syndrome & ~kSyndromeKind);
  switch (response.syndrome & kSyndromeKind) {
    case kSyndromeAck:
      acknowledge(response.psn.after(1), now);
      if (queue_.ask_for_lost(response.psn.after(1), now, window_.round_trip())) window_.lost(now);
      return settle();
    case kSyndromeRnr:
      return take_rnr(response.psn, code, now);
    case kSyndromeNak:
      if (code == static_cast<std::uint8_t>(Nak::kSequence)) {
        return take_sequence_error(response.psn, response.message_number, now);
      }
      return take_refusal(response, code, now);
    default:
      return;
  }
}

// All packets before `end` have arrived.
void Requester::acknowledge(Psn end, Time now) {
  const Psn before = in_flight_.acknowledged();
  if (!before.before(end)) return;
  if (black_hole_.possible() && !queue_.front().lacks_answer(before)) black_hole_.refute();
  const auto count = static_cast<unsigned>(end.since(before));
  const bool full = in_flight_.count() + 1 >= window_.size();
  in_flight_.acknowledge(end);
  if (const auto round_trip = packetizer_.acknowledged(end, now)) window_.timed(*round_trip, now);
  if (settings_.selective) window_.note_answer();
  window_.acknowledged(count, full);
  timer_.receiver_ready();
  timer_.restart(now, window_.rto());
}

void Requester::arrived(const void* cookie, Time now) {
  const QueuedWork* work = queue_.find_sent(cookie);
  if (work == nullptr) return;
  acknowledge(work->end(), now);
  settle();
}

void Requester::take_read(const wire::Packet& response, Time now) {
  QueuedWork* work = queue_.find(response.psn);
  if (work == nullptr || !work->reads()) {
    settings_.stats->add(Stat::kUnexpectedResponses);
    return;
  }
  const auto index = static_cast<std::uint32_t>(response.psn.since(work->first));
  const std::size_t length = work->payload_of(index, settings_.path_mtu);
  if (work->there.has(index) || response.payload.size() != length) {
    settings_.stats->add(Stat::kUnexpectedResponses);
    return;
  }
  const std::uint64_t begin = work->offset + std::uint64_t{index} * settings_.path_mtu;
  if (!memory_.scatter(work->buffers(), begin, response.payload)) return lose_read(*work, now);
  work->there.add(index);
  black_hole_.refute();
  queue_.asked_for(*work, AnswerSet(index, 1));
  if (work->first_lacking() == work->packets) queue_.answered(*work);
  timer_.restart(now, window_.rto());
  acknowledge(response.psn.after(1), now);
  // An answer that closes a gap was asked for again: answers behind it may have been lost
  // meanwhile.
  const bool closes = work->there.gap_from(index) > index + 1;
  const Psn end = closes ? in_flight_.acknowledged() : response.psn;
  if (queue_.ask_for_lost(end, now, window_.round_trip())) window_.lost(now);
  settle();
}

// An SGE of the read may not be written. The peer has done its part: of reliable datagrams the
// read alone fails.
void Requester::lose_read(QueuedWork& work, Time now) {
  work.status = CompletionStatus::kLocalProtection;
  if (settings_.kind != wire::Transport::kReliableDatagram) {
    acknowledge(work.first, now);
    settle();
    return failed_ ? void() : stop();
  }
  acknowledge(work.end(), now);
  timer_.restart(now, window_.rto());
  queue_.answered(work);
  settle();
}

void Requester::take_atomic(const wire::Packet& response, Time now) {
  QueuedWork* work = queue_.find(response.psn);
  if (work == nullptr || !work->asks() || work->reads()) {
    settings_.stats->add(Stat::kUnexpectedResponses);
    return;
  }
  if (work->work.original != nullptr) *work->work.original = response.original;
  work->there.add(0);
  queue_.answered(*work);
  timer_.restart(now, window_.rto());
  acknowledge(response.psn.after(1), now);
  if (queue_.ask_for_lost(response.psn, now, window_.round_trip())) window_.lost(now);
  settle();
}

// Weft says which packets it lacks, by their first and how many, or that it lacks no others up to
// that one; others mean all from the first one on, which acknowledges those before.
void Requester::take_sequence_error(Psn psn, std::uint32_t count, Time now) {
  if (timer_.waiting() || psn.before(in_flight_.acknowledged())) return;
  const auto rest = static_cast<std::uint32_t>(in_flight_.next().since(psn));
  if (!settings_.selective) {
    acknowledge(psn, now);
    count = rest;
  }
  if (count == 0) return in_flight_.reported(psn.after(1));
  in_flight_.lacks({psn, std::min(count, rest)});
  window_.lost(now);
  settle();
}

// It drops all packets from there on until it is ready.
void Requester::take_rnr(Psn psn, std::uint8_t code, Time now) {
  if (timer_.waiting() || psn.before(in_flight_.acknowledged())) return;
  acknowledge(psn, now);
  settle();
  if (queue_.empty()) return;
  const unsigned in_a_row = timer_.count_not_ready();
  if (settings_.rnr_retries < kRnrRetryForever && in_a_row > settings_.rnr_retries) {
    return fail(CompletionStatus::kRnrRetryExceeded);
  }
  in_flight_.lacks({psn, static_cast<std::uint32_t>(in_flight_.next().since(psn))});
  timer_.restart(now, window_.rto());
  black_hole_.refute();  // the packet has arrived there
  timer_.wait_until(now + rnr_wait(code));
}

void Requester::take_refusal(const wire::Packet& response, std::uint8_t code, Time now) {
  const Psn psn = response.psn;
  QueuedWork* work = queue_.find(psn);
  if (work == nullptr) {
    settings_.stats->add(Stat::kUnexpectedResponses);
    return;
  }
  const bool datagrams = settings_.kind == wire::Transport::kReliableDatagram;
  const CompletionStatus status = status_of(code);
  // A read may fail when others behind it have been carried out: of reliable datagrams it alone
  // does.
  const bool alone = work->reads() && status == CompletionStatus::kRemoteOperation && datagrams;
  if (psn.before(in_flight_.acknowledged()) && !alone) return;
  acknowledge(alone ? work->end() : psn, now);
  timer_.restart(now, window_.rto());
  const bool again = static_cast<Nak>(code) == Nak::kBeginAgain && datagrams &&
                     work->work.kind == work::WorkKind::kSend && !work->resync;
  if (again) {
    queue_.restart_from(*work);
    return resynchronise();
  }
  if (work->asks()) queue_.answered(*work);
  work->ended = true;
  work->status = status;
  work->detail = detail_of(code, settings_.selective);
  constexpr std::uint32_t kRule = 0xF;
  if (alone && (response.message_number & ~kRule) == kReadLostByRule) {
    work->status = CompletionStatus::kRemoteAccess;
    work->detail = static_cast<std::uint8_t>(response.message_number & kRule);
  }
  if (!datagrams) return fail(CompletionStatus::kFlushed);
  if (alone) return settle();
  queue_.restart_behind(*work);
  resynchronise();
}

// Work that begins anew goes again, with other numbers.
void Requester::resynchronise() {
  in_flight_.start_over();
  packetizer_.resynchronise();
  settle();
}

// Reports the work that has ended, in the order in which it was posted.
void Requester::settle() {
  while (!queue_.empty() && queue_.front().settled(in_flight_.acknowledged())) {
    black_hole_.refute();
    if (const auto end = queue_.pop()) sink_.ended(*end);
  }
  if (packetizer_.stopped() && !queue_.empty() && !failed_) stop();
  const bool all = in_flight_.unacknowledged() == 0 && queue_.awaited() == 0;
  if (queue_.empty() || all) timer_.stop();
}

}  // namespace weft::transport
