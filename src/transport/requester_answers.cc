// SPDX-License-Identifier: BSD-2-Clause
// What does an answer say about the work that was sent?
#include <algorithm>

#include "transport/requester.h"

namespace weft::transport {

using wire::Operation;

namespace {

Status status_of(std::uint8_t code) {
  switch (static_cast<Nak>(code)) {
    case Nak::kSequence:
    case Nak::kInvalidRequest:
      return Status::kRemoteInvalid;
    case Nak::kRemoteAccess:
    case Nak::kRefusal:
      return Status::kRemoteAccess;
    case Nak::kRemoteOperational:
      return Status::kRemoteOperational;
  }
  return code > static_cast<std::uint8_t>(Nak::kRefusal) ? Status::kRemoteAccess
                                                         : Status::kRemoteInvalid;
}

std::uint8_t detail_of(std::uint8_t code) {
  constexpr auto kRefusal = static_cast<std::uint8_t>(Nak::kRefusal);
  return code > kRefusal ? code - kRefusal : 0;
}

}  // namespace

// The message that owns that number, has begun and not ended: most often the first.
Requester::Message* Requester::find(Psn psn) {
  if (!messages_.empty()) {
    Message& first = messages_.front();
    if (first.begun() && first.range().has(psn)) return first.ended ? nullptr : &first;
  }
  const auto begun = std::partition_point(messages_.begin(), messages_.end(),
                                          [](const Message& message) { return message.begun(); });
  const auto found = std::partition_point(messages_.begin(), begun, [psn](const Message& message) {
    return !psn.before(message.end());
  });
  return found != begun && found->range().has(psn) && !found->ended ? &*found : nullptr;
}

void Requester::take(const wire::Packet& response, Time now) {
  const bool of_this_kind = wire::transport_of(response.opcode) == settings_.kind;
  if (failed_ || !response.psn.before(next_) || !of_this_kind) {
    ++counts_.ignored;
    return;
  }
  heard();
  const Operation operation = wire::operation_of(response.opcode);
  if (operation == Operation::kAcknowledge) return take_acknowledge(response, now);
  if (operation == Operation::kAtomicAcknowledge) return take_atomic(response, now);
  const bool read =
      operation >= Operation::kReadResponseFirst && operation <= Operation::kReadResponseOnly;
  if (read) return take_read(response, now);
  ++counts_.ignored;
}

void Requester::take_acknowledge(const wire::Packet& response, Time now) {
  const auto code = static_cast<std::uint8_t>(response.syndrome & ~kSyndromeKind);
  switch (response.syndrome & kSyndromeKind) {
    case kSyndromeAck:
      acknowledge(response.psn.after(1), now);
      miss_answers(response.psn.after(1), now);
      return settle();
    case kSyndromeRnr:
      return take_rnr(response.psn, code, now);
    case kSyndromeNak:
      if (code == static_cast<std::uint8_t>(Nak::kSequence)) {
        return take_sequence_error(response.psn, response.message_number, now);
      }
      return take_refusal(response.psn, code, now);
    default:
      return;
  }
}

// Everything before `end` has arrived.
void Requester::acknowledge(Psn end, Time now) {
  if (!acknowledged_.before(end)) return;
  if (asked_.before(end)) asked_ = end;
  if (large_retries_ != 0 && !lacks_answer(messages_.front())) large_retries_ = 0;
  const auto count = static_cast<unsigned>(end.since(acknowledged_));
  const bool full = under_way() + 1 >= window_.size();
  acknowledged_ = end;
  told(end);
  missing_.forget_before(end);
  repairs_.forget_before(end);
  if (timed_ && timed_->before(end)) {
    window_.timed(now - timed_at_, now);
    timed_.reset();
  }
  if (resync_ && resync_->before(end)) resync_.reset();
  if (settings_.selective) window_.heard_again();
  window_.acknowledged(count, full);
  rnr_in_a_row_ = 0;
  progressed(now);
}

void Requester::arrived(const void* cookie, Time now) {
  const auto message = std::find_if(messages_.begin(), messages_.end(), [&](const Message& each) {
    return !each.begun() || (each.work.cookie == cookie && !each.resync);
  });
  if (message == messages_.end() || !message->begun() || message->cut != message->packets) return;
  acknowledge(message->end(), now);
  settle();
}

void Requester::progressed(Time now) {
  heard_ = now;
  timeouts_ = 0;
  rto_ = window_.rto();
  try_again_ = now + rto_;
}

void Requester::ask_for(Message& message, const AnswerSet& answers) {
  if (answers.empty()) return;
  if (message.again.empty()) ++asking_again_;
  message.again.add(answers);
}

// Answers come in the order of requests: what should have come before `end` and did not is lost, or
// late, so it is asked for again once in a round trip only.
void Requester::miss_answers(Psn end, Time now) {
  if (asking_ == 0) return;
  for (Message& message : messages_) {
    if (!message.begun() || !message.first.before(end)) return;
    if (!message.asks() || message.ended || now - message.asked < window_.round_trip()) continue;
    const AnswerSet lost = message.lacks_before(end).without(message.again);
    if (lost.empty()) continue;
    window_.lost(now);
    ask_for(message, lost);
  }
}

void Requester::answered(Message& message) {
  message.ended = true;
  --asking_;
  if (!message.again.empty()) --asking_again_;
  message.again = {};
}

void Requester::take_read(const wire::Packet& response, Time now) {
  Message* message = find(response.psn);
  if (message == nullptr || !message->reads()) {
    ++counts_.ignored;
    return;
  }
  const auto index = static_cast<std::uint32_t>(response.psn.since(message->first));
  const std::size_t length = payload_of(*message, index);
  if (message->there.has(index) || response.payload.size() != length) {
    ++counts_.ignored;
    return;
  }
  const std::uint64_t begin = message->offset + std::uint64_t{index} * settings_.path_mtu;
  if (!memory_.scatter(message->buffers(), begin, response.payload)) {
    return lose_answer(*message, now);
  }
  message->there.add(index);
  large_retries_ = 0;
  if (message->again.has(index)) {
    message->again.remove(index);
    if (message->again.empty()) --asking_again_;
  }
  if (message->first_lacking() == message->packets) answered(*message);
  progressed(now);
  acknowledge(response.psn.after(1), now);
  // What closes a gap was asked for again: what lacks behind it may have been lost meanwhile.
  const bool closes = message->there.gap_from(index) > index + 1;
  miss_answers(closes ? acknowledged_ : response.psn, now);
  settle();
}

// A piece of the read may not be written. The peer has done its part: of reliable datagrams the
// read alone fails.
void Requester::lose_answer(Message& message, Time now) {
  message.status = Status::kLocalProtection;
  if (settings_.kind != wire::Transport::kReliableDatagram) return fail(Status::kFlushed);
  acknowledge(message.end(), now);
  progressed(now);
  answered(message);
  settle();
}

void Requester::take_atomic(const wire::Packet& response, Time now) {
  Message* message = find(response.psn);
  if (message == nullptr || !message->asks() || message->reads()) {
    ++counts_.ignored;
    return;
  }
  if (message->work.original != nullptr) *message->work.original = response.original;
  message->there.add(0);
  answered(*message);
  progressed(now);
  acknowledge(response.psn.after(1), now);
  miss_answers(response.psn, now);
  settle();
}

// Weft says which packets it lacks, by their first and how many, or that it lacks no others up to
// that one; others mean all from the first one on, which acknowledges those before.
void Requester::take_sequence_error(Psn psn, std::uint32_t count, Time now) {
  if (waiting_ || psn.before(acknowledged_)) return;
  if (!settings_.selective) {
    acknowledge(psn, now);
    count = static_cast<std::uint32_t>(next_.since(psn));
  }
  if (count == 0) return told(psn.after(1));
  count = std::min(count, static_cast<std::uint32_t>(next_.since(psn)));
  lacks({psn, count});
  window_.lost(now);
  settle();
}

// It drops what follows until it is ready.
void Requester::take_rnr(Psn psn, std::uint8_t code, Time now) {
  if (waiting_ || psn.before(acknowledged_)) return;
  acknowledge(psn, now);
  settle();
  if (messages_.empty()) return;
  ++rnr_in_a_row_;
  if (settings_.rnr_retries < kRnrRetryForever && rnr_in_a_row_ > settings_.rnr_retries) {
    return fail(Status::kRnrRetriesExceeded);
  }
  lacks({psn, static_cast<std::uint32_t>(next_.since(psn))});
  progressed(now);
  large_retries_ = 0;  // it has come there
  waiting_ = true;
  not_before_ = now + rnr_wait(code);
}

void Requester::take_refusal(Psn psn, std::uint8_t code, Time now) {
  Message* message = find(psn);
  if (message == nullptr) {
    ++counts_.ignored;
    return;
  }
  const Status status = status_of(code);
  // A read may fail when others behind it have been carried out: of reliable datagrams it alone
  // does.
  const bool alone = message->reads() && status == Status::kRemoteOperational &&
                     settings_.kind == wire::Transport::kReliableDatagram;
  if (psn.before(acknowledged_) && !alone) return;
  acknowledge(alone ? message->end() : psn, now);
  progressed(now);
  const auto refused = static_cast<std::size_t>(
      std::find_if(messages_.begin(), messages_.end(),
                   [message](const Message& each) { return &each == message; }) -
      messages_.begin());
  if (message->asks()) answered(*message);
  message->ended = true;
  message->status = status;
  message->detail = detail_of(code);
  if (settings_.kind != wire::Transport::kReliableDatagram) return fail(Status::kFlushed);
  if (!alone) agree_anew(refused);
  settle();
}

// The numbers from the refused request on are void: what came after it goes again with others.
void Requester::agree_anew(std::size_t refused) {
  const std::size_t after = refused + 1;
  messages_[refused].packets = messages_[refused].cut;  // others get the numbers of the rest
  for (std::size_t i = after; i < messages_.size() && messages_[i].begun(); ++i) {
    Message& message = messages_[i];
    if (message.asks()) {
      --remembered_;
      --asking_;
    }
    message.packets = message.cut = 0;
  }
  while (!messages_[refused].whole) {  // no further parts of that read are asked for
    messages_[refused].whole = messages_[after].whole;
    messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(after));
  }
  missing_.clear();
  repairs_.clear();
  timed_.reset();
  acknowledged_ = told_of_ = next_;
  Message resync;
  resync.resync = true;
  messages_.insert(messages_.begin() + static_cast<std::ptrdiff_t>(after), resync);
  cutting_ = after;
  resync_ = next_;
}

bool Requester::settled(const Message& message) const {
  if (message.ended) return true;
  return message.begun() && !message.asks() && message.cut == message.packets &&
         !acknowledged_.before(message.end());
}

// Takes off the first message and reports it. A part of a read that failed leaves that to the next
// one, which need not begin any more.
void Requester::pop() {
  const Message message = messages_.front();
  messages_.pop_front();
  large_retries_ = 0;
  if (cutting_ != 0) --cutting_;
  if (message.begun() && message.asks()) --remembered_;
  if (message.resync) return;
  if (message.whole) return sink_.ended({message.work.cookie, message.status, message.detail});
  if (message.status == Status::kSuccess) return;
  Message& rest = messages_.front();
  rest.status = message.status;
  rest.detail = message.detail;
  if (!rest.begun()) rest.ended = true;
}

// Reports what has ended, in the order in which it was posted.
void Requester::settle() {
  while (!messages_.empty() && settled(messages_.front())) pop();
  if (messages_.empty() || (acknowledged_ == next_ && asking_ == 0)) try_again_ = Time::max();
}

}  // namespace weft::transport
