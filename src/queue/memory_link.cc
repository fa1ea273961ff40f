// SPDX-License-Identifier: BSD-2-Clause
// How does a connected queue pair reach its peer through shared memory?
#include "memory_link.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "roce/route.h"
#include "target.h"
#include "transport/settings.h"

namespace weft::queue {

using work::CompletionStatus;
using work::WorkKind;

namespace {

// Bytes that one post, or one poll, copies by one-sided operations.
constexpr std::uint64_t kAtOnce = 256 * 1024;
// A peer that is waited for is looked for so often; a retry count of 7 for RNR has no end.
constexpr auto kCheck = std::chrono::milliseconds(100);
constexpr unsigned kWithoutEnd = 7;
constexpr std::size_t kFirstWorks = 16;
// SENDs from so many bytes on are not copied twice.
constexpr std::uint64_t kInPlaceFrom = 8192;
// WRITEs of at most so many bytes share a system call.
constexpr std::uint64_t kSmallWrite = 4096;

std::uint16_t connection_of(Psn first) { return static_cast<std::uint16_t>(first.value()); }

}  // namespace

MemoryLink::MemoryLink(QpType type, const QpAttributes& attributes, const MemoryParts& parts)
    : type_(type),
      parts_(parts),
      destination_(attributes.destination),
      address_(attributes.address.remote),
      access_(parts.peer, parts.local, parts.domain, parts.qpn, attributes.destination,
              type == QpType::kXrcSend),
      works_(kFirstWorks),
      receive_psn_(attributes.receive_psn),
      rnr_timer_(attributes.rnr_timer) {
  if (parts.capture == nullptr) return;
  os::SocketAddress own = attributes.address.local;
  os::SocketAddress peer = attributes.address.remote;
  own.set_port(roce::port_of(parts.qpn));
  peer.set_port(roce::port_of(destination_));
  records_ = std::make_unique<NearRecords>(parts.capture, roce::route_between(own, peer),
                                           roce::route_between(peer, own));
}

bool MemoryLink::is_peer(const os::SocketAddress& from) const {
  return from.host() == address_.host();
}

// A peer that sends packets begins with the first one; others are left over from an earlier life.
void MemoryLink::take_request(const roce::PacketArrival& arrival, Time /*now*/) {
  if (arrival.packet.psn == receive_psn_) got_packet_.store(true, std::memory_order_relaxed);
}

void MemoryLink::forget_source(std::uint32_t source) {
  if (source_ != source) return;
  source_.reset();
  begun_ = within_ = false;
}

void MemoryLink::begin_sending(const QpAttributes& attributes) {
  connection_ = connection_of(attributes.send_psn);
  sends_ = true;
  failed_ = false;
  ack_timeout_ = transport::ack_timeout(attributes.timeout);
  timeout_is_endless_ = attributes.timeout == 0;
  retries_ = attributes.retries;
  rnr_retries_ = attributes.rnr_retries;
}

void MemoryLink::post(const QpSendRequest& request) {
  if (works_.full()) works_.set_capacity(2 * works_.capacity());
  works_.push_back(NearWork(request.work, request.refusal));
}

void MemoryLink::flush() {
  failed_ = true;
  header_.store(nullptr, std::memory_order_release);
  in_ring_ = 0;
  while (!works_.empty()) end_first(CompletionStatus::kFlushed);
}

// An answer to no request is nonsense, which no completion could tell.
void MemoryLink::fail(CompletionStatus status, std::uint8_t detail) {
  if (works_.empty()) return;
  failed_ = true;
  end_first(status, detail);
  flush();
}

void MemoryLink::end_first(CompletionStatus status, std::uint8_t detail) {
  void* const cookie = works_.front().work.cookie;
  works_.pop_front();
  if (in_ring_ != 0) --in_ring_;
  rnr_attempts_ = attempts_ = 0;
  parts_.sink.ended({cookie, status, detail});
}

// Work that is not executed is repeated there from its beginning.
void MemoryLink::hand_over(Link& successor) {
  for (NearWork& each : works_) {
    QpSendRequest request;
    request.work = each.work;
    request.work.sges = each.list();
    request.refusal = each.refusal;
    successor.post(request);
  }
  works_.clear();
}

void MemoryLink::emit_requests(bool /*polls*/, Time now) {
  if (!sends_ || failed()) return;
  heed_sleepers();
  budget_ = kAtOnce;
  blocked_ = false;
  if (stall_ != 0 && now >= resumes_at_) ask_again();
  while (!failed() && stall_ == 0 && now >= resumes_at_ && in_ring_ < works_.size()) {
    if (carry_out(works_[in_ring_], now) == Advance::kWaits) break;
  }
  if (failed()) return;
  const bool waits = in_ring_ != 0 || blocked_;
  header_.store(waits ? &slot_->header() : nullptr, std::memory_order_release);
  if (waits) check_peer(now);
}

Time MemoryLink::send_due() const {
  if (!sends_ || failed_) return Time::max();
  if (wants_packets()) return Time::min();
  if (stall_ != 0) return resumes_at_;
  return in_ring_ == works_.size() || blocked_ ? Time::max() : resumes_at_;
}

Glance MemoryLink::glance() const {
  const shm::SlotHeader* const header = header_.load(std::memory_order_acquire);
  if (header == nullptr) return Glance::kIdle;
  const bool same = header->cells_consumed.load(std::memory_order_relaxed) ==
                        seen_consumed_.load(std::memory_order_relaxed) &&
                    header->answer.load(std::memory_order_relaxed) ==
                        seen_answer_.load(std::memory_order_relaxed);
  return same ? Glance::kNothing : Glance::kNews;
}

// A target that has executed messages wakes a sender that says that it sleeps, and takes the word
// back. The answers are looked at behind this.
void MemoryLink::heed_sleepers() {
  const bool asleep = parts_.sleepers.load() != 0;
  const bool same = !asleep && !asleep_;
  asleep_ = asleep;
  if (!same && slot_ != nullptr) slot_->header().sender_asleep.store(asleep ? 1 : 0);
  if (asleep) std::atomic_thread_fence(std::memory_order_seq_cst);
}

// Answers of the target

// A word of the owner counts only as far as it can be true.
void MemoryLink::take_answers(Time now) {
  if (!sends_ || failed()) return;
  heed_sleepers();
  read_answer(now);
}

void MemoryLink::read_answer(Time now) {
  if (slot_ == nullptr) return;
  const shm::SlotHeader& header = slot_->header();
  const std::uint64_t answer = header.answer.load(std::memory_order_acquire);
  const std::uint64_t consumed = header.cells_consumed.load(std::memory_order_acquire);
  // The owner counts first, and answers then: both words have to be of one moment.
  if (header.answer.load(std::memory_order_acquire) != answer) return;
  seen_consumed_.store(consumed, std::memory_order_relaxed);
  seen_answer_.store(answer, std::memory_order_relaxed);
  std::uint64_t executed = std::min(consumed, ring_->position());
  if (answer != 0) executed = std::min(executed, (answer >> 16) - 1);
  while (in_ring_ != 0 && works_.front().end <= executed) end_first(CompletionStatus::kSuccess);
  if (stall_ == answer || failed_) return;
  stall_ = 0;  // executed meanwhile
  resumes_at_ = Time::min();
  if (answer != 0) take_stall(answer, now);
}

void MemoryLink::take_stall(std::uint64_t answer, Time now) {
  switch (kind_of(answer)) {
    case AnswerKind::kNotReady:
    case AnswerKind::kNotThere:
      break;
    case AnswerKind::kByPackets:
      by_packets_ = true;
      return;
    case AnswerKind::kAccess:
      return fail(CompletionStatus::kRemoteAccess, detail_of(answer));
    case AnswerKind::kOperational:
      return fail(CompletionStatus::kRemoteOperation);
    case AnswerKind::kSenderMemory:
      return fail(CompletionStatus::kLocalProtection, detail_of(answer));
    case AnswerKind::kNone:
    case AnswerKind::kInvalid:
      return fail(CompletionStatus::kRemoteInvalidRequest, detail_of(answer));
    default:
      return fail(CompletionStatus::kBadResponse);  // the target writes nonsense
  }
  stall_ = answer;
  const bool rnr = kind_of(answer) == AnswerKind::kNotReady;
  if (rnr && rnr_retries_ != kWithoutEnd && rnr_attempts_ >= rnr_retries_) {
    return withdraw(CompletionStatus::kRnrRetryExceeded);
  }
  resumes_at_ = now + (rnr ? transport::rnr_wait(detail_of(answer)) : patience());
}

// The time without an answer after which a request is repeated (IBTA 9.7.6.1.3).
Time::duration MemoryLink::patience() const {
  return timeout_is_endless_ ? Time::duration(kCheck) : Time::duration(ack_timeout_);
}

// The owner puts its answer there anew if that is the same.
void MemoryLink::ask_again() {
  const bool rnr = kind_of(stall_) == AnswerKind::kNotReady;
  if (!rnr && !timeout_is_endless_ && attempts_ >= retries_) {
    return withdraw(CompletionStatus::kRetryExceeded);
  }
  ++(rnr ? rnr_attempts_ : attempts_);
  std::uint64_t expected = std::exchange(stall_, 0);
  seen_answer_.store(0, std::memory_order_relaxed);
  resumes_at_ = Time::min();
  slot_->header().answer.compare_exchange_strong(expected, 0);
  slot_->ring();
}

// Unless the owner has begun to execute the message meanwhile.
void MemoryLink::withdraw(CompletionStatus status) {
  std::uint64_t expected = std::exchange(stall_, 0);
  resumes_at_ = Time::min();
  if (!slot_->header().answer.compare_exchange_strong(expected, shm::kCellWithdrawn)) return;
  slot_->ring();
  fail(status);
}

void MemoryLink::check_peer(Time now) {
  if (now - checked_at_ < kCheck) return;
  checked_at_ = now;
  if (!ring_->gone() && !slot_->closed_by_owner() && parts_.peer->is_there()) return;
  // Some messages may have been executed before it ended.
  read_answer(now);
  if (failed() || works_.empty()) return;
  if (type_ != QpType::kUc) return fail(CompletionStatus::kRetryExceeded);
  while (!works_.empty()) {
    const CompletionStatus refusal = works_.front().refusal;
    if (refusal != CompletionStatus::kSuccess) return fail(refusal);
    end_first(CompletionStatus::kSuccess);
  }
}

// Requests

MemoryLink::Advance MemoryLink::carry_out(NearWork& request, Time now) {
  const bool sends = request.work.kind == WorkKind::kSend;
  const bool refused = request.refusal != CompletionStatus::kSuccess;
  if (!sends || refused) {
    // A post does not know yet how far the target has come.
    if (in_ring_ != 0) read_answer(now);
    if (failed()) return Advance::kOver;
    blocked_ = in_ring_ != 0;
    if (blocked_) return Advance::kWaits;
  }
  if (refused) return fail(request.refusal), Advance::kOver;
  return sends ? send(request) : access(request, now);
}

// False: it has failed, or the peer is reached by packets from now on.
bool MemoryLink::open_ring() {
  if (slot_ != nullptr) return true;
  auto slot = parts_.peer->claim();
  if (!slot && slot.error().code == ENOENT) {
    type_ == QpType::kUc ? end_first(CompletionStatus::kSuccess)
                         : fail(CompletionStatus::kRetryExceeded);
    return false;
  }
  // No descriptor or no shared memory is left, or a filter forbids it by now to reach the process.
  if (!slot) {
    by_packets_ = true;
    return false;
  }
  use(std::move(slot).value());
  return true;
}

void MemoryLink::use(std::unique_ptr<shm::PeerSlot> slot) {
  slot_ = std::move(slot);
  ring_.emplace(*slot_);
  if (asleep_) slot_->header().sender_asleep.store(1);
}

MessageHead MemoryLink::head_of(const work::Work& work) const {
  const std::uint8_t flags = type_ == QpType::kUc ? kUnreliable : 0;
  return {destination_, parts_.qpn, work.immediate, flags, work.shared_receive, connection_};
}

MemoryLink::Advance MemoryLink::send(NearWork& request) {
  if (!open_ring()) return Advance::kOver;
  // An unreliable target says nothing of a buffer that it may not read.
  const bool in_place =
      type_ != QpType::kUc && request.work.length >= kInPlaceFrom &&
      std::ranges::all_of(request.sges, [](const auto& sge) { return sge.key != 0; });
  do {
    blocked_ = !ring_->room_for(1);
    if (blocked_) return Advance::kWaits;
    MessageHead head = head_of(request.work);
    if (request.done == 0) head.flags |= kFirstPart;
    const std::uint64_t before = ring_->position();
    const Advance put = in_place ? offer_part(request, head) : copy_part(request, head);
    if (ring_->position() == before) return put;
  } while (request.done < request.work.length);
  request.end = ring_->position();
  ++in_ring_;
  if (records_ != nullptr) {
    MessageHead head = head_of(request.work);
    head.flags |= flags_of(request.work);
    records_->sent(head, request.list(), request.work.length);
  }
  return Advance::kOver;
}

// A part that does not fit a cell goes to the bulk ring.
MemoryLink::Advance MemoryLink::copy_part(NearWork& request, MessageHead head) {
  const work::Work& work = request.work;
  const std::uint64_t left = work.length - request.done;
  const bool fits = left <= shm::kInlineBytes;
  const std::uint64_t part = std::min<std::uint64_t>(left, slot_->geometry().max_eager());
  std::byte* place = ring_->next_cell().bytes;
  if (!fits) {
    if (!slot_->memory().back_bulk()) {
      // Messages before it may be executed yet.
      blocked_ = in_ring_ != 0;
      by_packets_ = !blocked_;
      return by_packets_ ? Advance::kOver : Advance::kWaits;
    }
    place = ring_->bulk_room(part);
    blocked_ = place == nullptr;
    if (blocked_) return Advance::kWaits;
  }
  if (!parts_.memory.gather(request.list(), request.done, {place, part})) {
    request.refusal = CompletionStatus::kLocalProtection;  // in its turn
    return Advance::kOver;
  }
  if (part == left) head.flags |= kLastPart | flags_of(work);
  if (!fits) ring_->next_cell().bulk = ring_->take_bulk(part, 0);
  publish(*ring_, head, fits ? shm::CellKind::kInline : shm::CellKind::kBulk, fits ? part : 0);
  request.done += part;
  return Advance::kOver;
}

// The target reads the bytes itself, which saves a copy.
MemoryLink::Advance MemoryLink::offer_part(NearWork& request, MessageHead head) {
  work::Segment cut[kMaxSges];
  const std::uint64_t left = request.work.length - request.done;
  InPlaceNote note;
  note.count = std::min<std::size_t>(
      slice<work::Segment>(request.list(), request.done, std::min(left, kAtOnce), cut),
      InPlaceNote::kMost);
  for (std::size_t i = 0; i < note.count; ++i) {
    note.buffers[i] = {reinterpret_cast<std::uint64_t>(cut[i].base),
                       static_cast<std::uint32_t>(cut[i].length), cut[i].key};
    request.done += cut[i].length;
  }
  head.flags |= kInPlace;
  if (request.done == request.work.length) head.flags |= kLastPart | flags_of(request.work);
  std::memcpy(ring_->next_cell().bytes, &note, sizeof note);
  publish(*ring_, head, shm::CellKind::kInline, sizeof note);
  return Advance::kOver;
}

// The bytes are there; the target takes a receive for the immediate data.
MemoryLink::Advance MemoryLink::announce_write(NearWork& request) {
  if (!open_ring()) return Advance::kOver;
  blocked_ = !ring_->room_for(1);
  if (blocked_) return Advance::kWaits;
  const auto length = static_cast<std::uint32_t>(request.work.length);
  std::memcpy(ring_->next_cell().bytes, &length, sizeof length);
  MessageHead head = head_of(request.work);
  head.flags |= kFirstPart | kLastPart | kAfterWrite | flags_of(request.work);
  publish(*ring_, head, shm::CellKind::kInline, sizeof length);
  request.end = ring_->position();
  ++in_ring_;
  return Advance::kOver;
}

// One-sided operations

MemoryLink::Advance MemoryLink::access(NearWork& request, Time now) {
  resumes_at_ = Time::min();
  if (budget_ != 0 && write_together()) return Advance::kOver;
  const NearOutcome outcome = access_.carry_out(request, budget_);
  const work::Work& work = request.work;
  const bool told = outcome.done() || outcome.how == NearOutcome::How::kRefused;
  if (records_ != nullptr && told) records_->accessed(request, outcome);
  switch (outcome.how) {
    case NearOutcome::How::kDone:
      parts_.stats.add(Stat::kSharedOperations);
      if (work.kind == WorkKind::kWrite && work.has_immediate) return announce_write(request);
      end_first(CompletionStatus::kSuccess);
      return Advance::kOver;
    case NearOutcome::How::kGoesOn:
      return Advance::kWaits;
    case NearOutcome::How::kByPackets:
      by_packets_ = true;
      return Advance::kOver;
    case NearOutcome::How::kNotThere:
      return await_target(now);
    case NearOutcome::How::kRefused:
      refuse(work, outcome);
      return Advance::kOver;
    case NearOutcome::How::kFailed:
      break;
  }
  const bool lost = type_ == QpType::kUc && outcome.status == CompletionStatus::kRetryExceeded;
  lost ? end_first(CompletionStatus::kSuccess)
       : fail(outcome.status, static_cast<std::uint8_t>(outcome.reason));
  return Advance::kOver;
}

// Small WRITEs that stand behind each other take effect together. Where one of them may not, or the
// target is not there, each is carried out by itself.
bool MemoryLink::write_together() {
  NearWork* together[memory::kHazards];
  std::size_t count = 0;
  std::size_t entries = 0;
  for (std::size_t i = 0; i < works_.size() && count < memory::kHazards; ++i) {
    NearWork& each = works_[i];
    const work::Work& work = each.work;
    entries += each.sges.size();
    const bool fits = work.kind == WorkKind::kWrite && !work.has_immediate && work.length != 0 &&
                      work.length <= kSmallWrite && each.done == 0 &&
                      each.refusal == CompletionStatus::kSuccess && entries <= memory::kHazards &&
                      std::ranges::all_of(each.sges, [](const auto& sge) { return sge.key != 0; });
    if (!fits || work.shared_receive != works_[0].work.shared_receive) break;
    together[count++] = &each;
  }
  if (count < 2 || !access_.write_together(together, count)) return false;
  parts_.stats.add(Stat::kSharedOperations, count);
  for (; count != 0; --count) {
    if (records_ != nullptr) records_->accessed(works_.front(), {});
    budget_ -= std::min(budget_, works_.front().work.length);
    end_first(CompletionStatus::kSuccess);
  }
  return true;
}

MemoryLink::Advance MemoryLink::await_target(Time now) {
  if (type_ == QpType::kUc) {
    end_first(CompletionStatus::kSuccess);
    return Advance::kOver;
  }
  if (!parts_.peer->is_there() || (!timeout_is_endless_ && attempts_ >= retries_)) {
    fail(CompletionStatus::kRetryExceeded);
    return Advance::kOver;
  }
  ++attempts_;
  resumes_at_ = now + patience();
  return Advance::kWaits;
}

// Both ends of a reliable connection end. The owner looks for itself at what it is told.
void MemoryLink::refuse(const work::Work& work, const NearOutcome& outcome) {
  if (type_ == QpType::kUc) {
    parts_.stats.add_shared(Stat::kRefusedRequests);
    return end_first(CompletionStatus::kSuccess);
  }
  const RefusalNote note{work.address, static_cast<std::uint32_t>(work.length), work.key,
                         outcome.need,
                         outcome.status == CompletionStatus::kRemoteOperation ? 1U : 0U};
  const auto detail = static_cast<std::uint8_t>(outcome.reason);
  if (slot_ == nullptr) {
    if (auto slot = parts_.peer->claim()) use(std::move(slot).value());
  }
  if (slot_ != nullptr && ring_->room_for(1)) {
    std::memcpy(ring_->next_cell().bytes, &note, sizeof note);
    MessageHead head = head_of(work);
    head.flags |= kFirstPart | kLastPart | kAfterRefusal;
    publish(*ring_, head, shm::CellKind::kInline, sizeof note);
  }
  fail(outcome.status, detail);
}

// The receive half

work::RequestVerdict MemoryLink::begin_message(const MessageHead& head) {
  if (type_ == QpType::kXrcReceive) {
    const work::RequestVerdict usable = parts_.target.may_use(head.shared);
    if (!usable.ok()) return usable;
  }
  return head.has(kAfterWrite) ? parts_.target.may_report_immediate()
                               : parts_.target.message_begins();
}

std::uint16_t MemoryLink::postpones(std::uint32_t source, const MessageHead& head) {
  if (type_ == QpType::kUc) return 0;
  const bool expected =
      source_.value_or(source) == source && head.connection == connection_of(receive_psn_);
  if (!expected) return answer_of(AnswerKind::kNotThere);
  source_ = source;
  if (!head.has(kFirstPart) || head.has(kAfterRefusal) || within_) return 0;
  const work::RequestVerdict verdict = begin_message(head);
  begun_ = verdict.ok();
  if (begun_) return 0;
  if (verdict.kind != work::RequestVerdict::Kind::kNotReady) refused_ = true;
  return answer_of(verdict, rnr_timer_);
}

std::uint16_t MemoryLink::take_message(std::uint32_t source, const MessageHead& head,
                                       std::span<const std::byte> bytes) {
  if (type_ == QpType::kUc) {
    source_ = source_.value_or(source);
    if (head.has(kFirstPart) && source_ == source) {
      within_ = false;
      begun_ = begin_message(head).ok();
    }
  }
  if (source_ != source) return answer_of(AnswerKind::kNotThere);
  const std::uint16_t why = take_part(head, bytes);
  if (why == 0) return 0;
  if (type_ != QpType::kUc) {
    // The fault of neither leaves this end as it is.
    const AnswerKind kind = kind_of(why);
    refused_ = kind != AnswerKind::kSenderMemory && kind != AnswerKind::kByPackets;
    return why;
  }
  begun_ = within_ = false;
  if (head.has(kLastPart)) parts_.stats.add_shared(Stat::kRefusedRequests);
  return 0;
}

std::uint16_t MemoryLink::take_part(const MessageHead& head, std::span<const std::byte> bytes) {
  work::RequestVerdict verdict = work::kInvalidRequest;
  const work::MessageEnd end = end_of(head);
  if (head.has(kAfterRefusal)) {
    note_refusal(bytes);
  } else if (head.has(kAfterWrite)) {
    std::uint32_t length = 0;
    if (bytes.size() == sizeof length && !within_ && std::exchange(begun_, false)) {
      std::memcpy(&length, bytes.data(), sizeof length);
      if (records_ != nullptr) records_->arrived(head, {}, length);
      parts_.target.written({0, 0, length}, end);
      verdict = {};
    }
  } else if (head.has(kFirstPart) != within_ && begun_) {
    if (head.has(kInPlace)) {
      if (const std::uint16_t why = pull(bytes); why != 0) return why;
      verdict = {};
    } else {
      verdict = bytes.empty() ? work::RequestVerdict{} : parts_.target.message_goes_on(bytes);
    }
    within_ = !head.has(kLastPart);
    begun_ = within_;
    if (verdict.ok() && !within_) {
      if (records_ != nullptr) {
        records_->arrived(head, parts_.target.buffers(), parts_.target.received());
      }
      parts_.target.message_ends(end);
    }
  }
  return answer_of(verdict, rnr_timer_);
}

// Reads a part of a message from the sender's memory. With the transmit lock.
std::uint16_t MemoryLink::pull(std::span<const std::byte> bytes) {
  InPlaceNote note;
  if (bytes.size() != sizeof note) return answer_of(AnswerKind::kInvalid);
  std::memcpy(&note, bytes.data(), sizeof note);
  if (note.count == 0 || note.count > InPlaceNote::kMost) return answer_of(AnswerKind::kInvalid);
  RemoteRange buffers[InPlaceNote::kMost];
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < note.count; ++i) {
    const InPlaceNote::Buffer& each = note.buffers[i];
    buffers[i] = {each.address, each.length, RegionKey{each.key}};
    length += each.length;
  }
  if (length > kAtOnce) return answer_of(AnswerKind::kInvalid);
  NearAccess::Pull there(access_, {buffers, note.count});
  if (there.outcome().how == NearOutcome::How::kByPackets) return answer_of(AnswerKind::kByPackets);
  if (!there.outcome().done()) {
    return answer_of(AnswerKind::kSenderMemory, static_cast<std::uint8_t>(there.outcome().reason));
  }
  int error = 0;
  const work::RequestVerdict verdict = parts_.target.message_is_copied(
      length,
      [&there](std::uint64_t offset, std::span<const LocalRange> here) {
        return there.copy(offset, here);
      },
      error);
  if (!verdict.ok()) return answer_of(verdict, rnr_timer_);
  if (error == EPERM || error == ENOSYS) return answer_of(AnswerKind::kByPackets);
  return error == 0 ? 0 : answer_of(AnswerKind::kSenderMemory);
}

void MemoryLink::note_refusal(std::span<const std::byte> bytes) {
  RefusalNote note;
  if (bytes.size() != sizeof note) return;
  std::memcpy(&note, bytes.data(), sizeof note);
  constexpr auto kAll = Access::kRemoteRead | Access::kRemoteWrite | Access::kRemoteAtomic;
  if (note.need == Access::kNone || !includes(kAll, note.need)) return;
  parts_.target.look(note.need, {note.address, note.key, note.length}, note.operational != 0);
}

}  // namespace weft::queue
