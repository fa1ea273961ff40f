// SPDX-License-Identifier: BSD-2-Clause
// How does a queue pair reach its peer through shared memory?
#include "memory_link.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/atomic_op.h"
#include "base/slices.h"
#include "os/process_memory.h"
#include "os/user_memory.h"
#include "target.h"
#include "transport/settings.h"

namespace weft::queue {

using memory::AccessError;
using work::CompletionStatus;
using work::WorkKind;

namespace {

// Bytes that one post, or one poll, copies by one-sided operations.
constexpr std::uint64_t kAtOnce = 256 * 1024;
// A peer that is waited for is looked for so often; a retry count of 7 for RNR has no end.
constexpr auto kCheck = std::chrono::milliseconds(100);
constexpr unsigned kWithoutEnd = 7;

Access need_of(const work::Work& work) {
  if (work.kind == WorkKind::kRead) return Access::kRemoteRead;
  return work.kind == WorkKind::kWrite ? Access::kRemoteWrite : Access::kRemoteAtomic;
}

// The last cache line is an entry of its own, so that the kernel copies it last: programs poll the
// last byte of a WRITE.
std::size_t cut_last_line(std::span<const LocalRange> ranges, LocalRange* out) {
  std::copy(ranges.begin(), ranges.end(), out);
  LocalRange& last = out[ranges.size() - 1];
  const auto base = reinterpret_cast<std::uintptr_t>(last.base);
  const std::uintptr_t line = (base + last.length - 1) & ~std::uintptr_t{kCacheLine - 1};
  if (last.length == 0 || line <= base) return ranges.size();
  out[ranges.size()] = {reinterpret_cast<void*>(line), base + last.length - line};
  last.length = line - base;
  return ranges.size() + 1;
}

}  // namespace

MemoryLink::MemoryLink(const QpAttributes& attributes, const MemoryParts& parts)
    : parts_(parts), destination_(attributes.destination), rnr_timer_(attributes.rnr_timer) {}

void MemoryLink::begin_sending(const QpAttributes& attributes) {
  sends_ = true;
  ack_timeout_ = transport::ack_timeout(attributes.timeout);
  timeout_is_endless_ = attributes.timeout == 0;
  retries_ = attributes.retries;
  rnr_retries_ = attributes.rnr_retries;
}

void MemoryLink::post(const QpSendRequest& request) {
  pending_.emplace_back(request.work, request.refusal);
}

void MemoryLink::flush() {
  failed_ = true;
  for (const MessageInRing& each : std::exchange(sent_, {})) {
    parts_.sink.ended({each.cookie, CompletionStatus::kFlushed, 0});
  }
  for (const PendingWork& each : std::exchange(pending_, {})) {
    parts_.sink.ended({each.work.cookie, CompletionStatus::kFlushed, 0});
  }
}

// The first request that is not over is the oldest message in the ring, or the first behind those.
void MemoryLink::fail(CompletionStatus status, std::uint8_t detail) {
  failed_ = true;
  if (!sent_.empty()) {
    const MessageInRing first = sent_.front();
    sent_.pop_front();
    parts_.sink.ended({first.cookie, status, detail});
  } else if (!pending_.empty()) {
    void* const cookie = pending_.front().work.cookie;
    pending_.pop_front();
    parts_.sink.ended({cookie, status, detail});
  }
  flush();
}

void MemoryLink::end_first(CompletionStatus status) {
  void* const cookie = pending_.front().work.cookie;
  pending_.pop_front();
  attempts_ = 0;
  parts_.sink.ended({cookie, status, 0});
}

void MemoryLink::emit_requests(bool /*polls*/, Time now) {
  if (!sends_ || failed_) return;
  copied_ = 0;
  waits_ = false;
  take_answers(now);
  if (stall_ != 0 && now >= resumes_at_) ask_again();
  while (!failed_ && stall_ == 0 && now >= resumes_at_ && !pending_.empty()) {
    if (carry_out(pending_.front(), now) == Advance::kOver) continue;
    waits_ = copied_ < kAtOnce;  // else it goes on with the next poll
    break;
  }
  if (!failed_ && (waits_ || !sent_.empty())) check_peer(now);
}

// The port has to learn of a link that begins to wait; then it looks for the peer now and then.
Time MemoryLink::send_due() const {
  if (!sends_ || failed_) return Time::max();
  if (stall_ != 0) return resumes_at_;
  if (sent_.empty() && pending_.empty()) return Time::max();
  if (sent_.empty() && resumes_at_ != Time::min()) return resumes_at_;
  const bool waits = waits_ || pending_.empty();
  return waits ? checked_at_ + kCheck : Time::min();
}

void MemoryLink::set_asleep(bool asleep) {
  asleep_ = asleep;
  if (slot_ != nullptr) slot_->header().sender_asleep.store(asleep ? 1 : 0);
}

// Answers of the target

// A word of the owner counts only as far as it can be true.
void MemoryLink::take_answers(Time now) {
  if (slot_ == nullptr) return;
  const shm::SlotHeader& header = slot_->header();
  std::uint64_t executed = header.cells_consumed.load(std::memory_order_acquire);
  const std::uint64_t answer = header.answer.load(std::memory_order_acquire);
  if (answer != 0) executed = std::min(executed, (answer >> 16) - 1);
  executed = std::min(executed, ring_->position());
  while (!sent_.empty() && sent_.front().end <= executed) {
    void* const cookie = sent_.front().cookie;
    sent_.pop_front();
    attempts_ = 0;
    parts_.sink.ended({cookie, CompletionStatus::kSuccess, 0});
  }
  if (answer != 0 && stall_ == 0 && !failed_) take_stall(answer, now);
}

void MemoryLink::take_stall(std::uint64_t answer, Time now) {
  switch (kind_of(answer)) {
    case AnswerKind::kNotReady:
    case AnswerKind::kNotThere:
      break;
    case AnswerKind::kAccess:
      return fail(CompletionStatus::kRemoteAccess, detail_of(answer));
    case AnswerKind::kOperational:
      return fail(CompletionStatus::kRemoteOperation);
    case AnswerKind::kNone:
    case AnswerKind::kInvalid:
      return fail(CompletionStatus::kRemoteInvalidRequest, detail_of(answer));
    default:
      return fail(CompletionStatus::kBadResponse);  // the target writes nonsense
  }
  stall_ = answer;
  const bool rnr = kind_of(answer) == AnswerKind::kNotReady;
  if (rnr && rnr_retries_ != kWithoutEnd && attempts_ >= rnr_retries_) {
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
  const bool there = kind_of(stall_) == AnswerKind::kNotReady;
  if (!there && !timeout_is_endless_ && attempts_ >= retries_) {
    return withdraw(CompletionStatus::kRetryExceeded);
  }
  ++attempts_;
  std::uint64_t expected = std::exchange(stall_, 0);
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
  const bool closed = slot_ != nullptr && (ring_->gone() || slot_->closed_by_owner());
  if (!closed && parts_.peer->is_there()) return;
  // Some messages may have been executed before it ended.
  take_answers(now);
  if (!failed_ && !(sent_.empty() && pending_.empty())) fail(CompletionStatus::kRetryExceeded);
}

// Requests

MemoryLink::Advance MemoryLink::carry_out(PendingWork& request, Time now) {
  const bool one_sided = request.work.kind != WorkKind::kSend;
  const bool refused = request.refusal != CompletionStatus::kSuccess;
  if ((one_sided || refused) && !sent_.empty()) return Advance::kWaits;
  if (refused) return fail(request.refusal), Advance::kOver;
  return one_sided ? access(request, now) : send(request);
}

bool MemoryLink::open_ring() {
  if (slot_ != nullptr) return true;
  auto slot = parts_.peer->claim();
  if (!slot) {
    fail(shm::means_absent(slot.error().code) ? CompletionStatus::kRetryExceeded
                                              : CompletionStatus::kLocalOperation);
    return false;
  }
  slot_ = std::move(slot).value();
  ring_.emplace(*slot_);
  if (asleep_) slot_->header().sender_asleep.store(1);
  return true;
}

std::uint8_t MemoryLink::flags_of(const work::Work& work) {
  return static_cast<std::uint8_t>((work.has_immediate ? kWithImmediate : 0) |
                                   (work.solicited ? kSolicitedEvent : 0));
}

void MemoryLink::publish(const MessageHead& head, shm::CellKind kind, std::size_t inline_length) {
  link::SendRequest cell;
  cell.operation = link::MessageOperation::kQueuePair;
  cell.tag = head.tag();
  cell.data = head.data();
  ring_->publish(cell, kind, false, inline_length);
}

// A part that does not fit a cell goes to the bulk ring.
MemoryLink::Advance MemoryLink::send(PendingWork& request) {
  if (!open_ring()) return Advance::kOver;
  const work::Work& work = request.work;
  MessageHead head{destination_, parts_.qpn, work.immediate, 0};
  do {
    if (!ring_->room_for(1)) return Advance::kWaits;
    const std::uint64_t left = work.length - request.done;
    const bool fits = left <= shm::kInlineBytes;
    const std::uint64_t part =
        fits ? left : std::min<std::uint64_t>(left, slot_->geometry().max_eager());
    std::byte* place = ring_->next_cell().bytes;
    if (!fits) {
      if (!slot_->memory().back_bulk())
        return fail(CompletionStatus::kLocalOperation), Advance::kOver;
      place = ring_->bulk_room(part);
      if (place == nullptr) return Advance::kWaits;
    }
    if (!parts_.memory.gather(request.list(), request.done, {place, part})) {
      request.refusal = CompletionStatus::kLocalProtection;  // in its turn
      return Advance::kOver;
    }
    head.flags = request.done == 0 ? kFirstPart : 0;
    if (part == left) head.flags |= kLastPart | flags_of(work);
    if (!fits) ring_->next_cell().bulk = ring_->take_bulk(part, 0);
    publish(head, fits ? shm::CellKind::kInline : shm::CellKind::kBulk, fits ? part : 0);
    request.done += part;
  } while (request.done < work.length);
  sent_.push_back({work.cookie, ring_->position()});
  pending_.pop_front();
  return Advance::kOver;
}

// The bytes are there; the target takes a receive for the immediate data.
MemoryLink::Advance MemoryLink::announce_write(const PendingWork& request) {
  if (!open_ring()) return Advance::kOver;
  if (!ring_->room_for(1)) return Advance::kWaits;
  const auto length = static_cast<std::uint32_t>(request.work.length);
  std::memcpy(ring_->next_cell().bytes, &length, sizeof length);
  const auto flags =
      static_cast<std::uint8_t>(kFirstPart | kLastPart | kAfterWrite | flags_of(request.work));
  publish({destination_, parts_.qpn, request.work.immediate, flags}, shm::CellKind::kInline,
          sizeof length);
  sent_.push_back({request.work.cookie, ring_->position()});
  pending_.pop_front();
  return Advance::kOver;
}

// One-sided operations

void MemoryLink::release() {
  parts_.local.release();
  parts_.peer->memory().release();
  parts_.peer->pairs().release();
}

// Both ends of the connection end. The owner looks for itself at what it is told.
void MemoryLink::refuse(const work::Work& work, Access need, CompletionStatus status,
                        AccessError reason) {
  release();
  if (open_ring() && ring_->room_for(1)) {
    const RefusalNote note{
        work.address, static_cast<std::uint32_t>(work.length), work.key,
        status == CompletionStatus::kRemoteInvalidRequest && reason == AccessError::kNone
            ? Access::kNone
            : need,
        status == CompletionStatus::kRemoteOperation ? 1U : 0U};
    std::memcpy(ring_->next_cell().bytes, &note, sizeof note);
    publish({destination_, parts_.qpn, 0, kFirstPart | kLastPart | kAfterRefusal},
            shm::CellKind::kInline, sizeof note);
  }
  if (!failed_) fail(status, static_cast<std::uint8_t>(reason));
}

// The protection domain of the target's queue pair, which stays as it is until release(); nothing
// when this one has no right to the operation, or when no queue pair is there.
std::optional<DomainId> MemoryLink::pin_pair(const work::Work& work, Access need, Time now) {
  const RemoteRange entry{0, 1, RegionKey{destination_}};
  const memory::Grant grant = parts_.peer->pairs().check_and_pin(
      {kDomainOfQueuePairs, need, parts_.qpn}, need, {&entry, 1});
  if (grant.ok()) {
    const auto domain = reinterpret_cast<std::uintptr_t>(grant.segments[0].base);
    return DomainId{static_cast<std::uint32_t>(domain)};
  }
  if (grant.error == AccessError::kNoRight) {
    refuse(work, need, CompletionStatus::kRemoteInvalidRequest, AccessError::kNotServed);
  } else if (!parts_.peer->is_there() || (!timeout_is_endless_ && attempts_ > retries_)) {
    release();
    fail(CompletionStatus::kRetryExceeded);
  } else {
    ++attempts_;
    resumes_at_ = now + patience();
  }
  return std::nullopt;
}

MemoryLink::Advance MemoryLink::access(PendingWork& request, Time now) {
  const work::Work& work = request.work;
  const bool atomic = work.kind > WorkKind::kRead;
  const Access need = need_of(work);
  resumes_at_ = Time::min();
  const std::optional<DomainId> domain = pin_pair(work, need, now);
  if (!domain) return failed_ ? Advance::kOver : Advance::kWaits;
  const Advance step = atomic ? change(request, *domain) : copy(request, *domain, need);
  if (!failed_) release();
  if (failed_ || step == Advance::kWaits || request.done < work.length) return step;
  if (work.kind == WorkKind::kWrite && work.has_immediate) return announce_write(request);
  end_first(CompletionStatus::kSuccess);
  return Advance::kOver;
}

// EFAULT does not tell which side has a page that is missing.
MemoryLink::Advance MemoryLink::copy_failed(int error, const PendingWork& request, Access need) {
  const bool writes = request.work.kind == WorkKind::kWrite;
  bool local_is_there = true;
  if (error == EFAULT) {
    const std::span<const LocalRange> granted = parts_.local.granted();
    local_is_there = writes ? os::readable(granted) : os::writable(granted, total_length(granted));
  }
  release();
  if (!local_is_there) {
    fail(CompletionStatus::kLocalProtection);
  } else if (error == ESRCH || error == EPERM) {
    fail(CompletionStatus::kRetryExceeded);
  } else {
    refuse(request.work, need, CompletionStatus::kRemoteOperation, AccessError::kNone);
  }
  return Advance::kOver;
}

// At most kAtOnce bytes, and as many scatter-gather entries as can be pinned.
MemoryLink::Advance MemoryLink::copy(PendingWork& request, DomainId domain, Access need) {
  const work::Work& work = request.work;
  const bool writes = work.kind == WorkKind::kWrite;
  while (request.done < work.length) {
    if (copied_ >= kAtOnce) return Advance::kWaits;
    work::Segment parts[kMaxSges];
    const std::size_t count = std::min<std::size_t>(
        slice<work::Segment>(request.list(), request.done,
                             std::min(kAtOnce - copied_, work.length - request.done), parts),
        memory::kHazards);
    std::uint64_t length = 0;
    RemoteRange local[memory::kHazards];
    for (std::size_t i = 0; i < count; ++i) {
      local[i] = {reinterpret_cast<std::uint64_t>(parts[i].base), parts[i].length,
                  RegionKey{parts[i].key}};
      length += parts[i].length;
    }
    const LocalRange own{parts[0].base, parts[0].length};
    std::span<const LocalRange> here{&own, 1};
    const bool inlined = parts[0].key == 0;
    const auto pin_here = [&] {
      if (inlined) return true;
      const Access right = writes ? kLocalRead : kLocalWrite;
      const memory::Grant grant =
          parts_.local.check_and_pin({parts_.domain, right}, right, {local, count});
      here = grant.segments;
      local_error_ = grant.error;
      return grant.ok();
    };
    const RemoteRange whole{work.address, work.length, RegionKey{work.key}};
    const RemoteRange part{work.address + request.done, length, RegionKey{work.key}};
    memory::AccessGuard& there = parts_.peer->memory();
    const auto pin_there = [&](const RemoteRange& range) {
      const memory::Grant grant =
          there.check_and_pin({domain, need, destination_}, need, {&range, 1});
      if (!grant.ok()) refuse(work, need, CompletionStatus::kRemoteAccess, grant.error);
      return grant.ok();
    };
    // The remote key of a READ is checked first, the local keys of a WRITE.
    if (!writes && request.done == 0 && !pin_there(whole)) return Advance::kOver;
    if (!pin_here())
      return release(),
             fail(CompletionStatus::kLocalProtection, static_cast<std::uint8_t>(local_error_)),
             Advance::kOver;
    if (request.done == 0 && length != work.length && !pin_there(whole)) return Advance::kOver;
    if (!pin_there(part)) return Advance::kOver;
    LocalRange targets[memory::kMaxSegments + 1];
    const std::size_t segments =
        writes ? cut_last_line(there.granted(), targets) : there.granted().size();
    if (!writes) std::ranges::copy(there.granted(), targets);
    if (!parts_.peer->process().confirmed()) return copy_failed(ESRCH, request, need);
    int error = os::copy_process_memory(
        parts_.peer->process().pid(),
        writes ? os::CopyDirection::kToProcess : os::CopyDirection::kFromProcess, here,
        {targets, segments});
    if (error == 0 && !writes && !parts_.peer->process().confirmed()) error = ESRCH;
    if (error != 0) return copy_failed(error, request, need);
    request.done += length;
    copied_ += length;
  }
  return Advance::kOver;
}

MemoryLink::Advance MemoryLink::change(PendingWork& request, DomainId domain) {
  work::Work& work = request.work;
  const bool compares = work.kind == WorkKind::kCompareSwap;
  const Access need = Access::kRemoteAtomic;
  std::uint64_t found = 0;
  if (work.address % sizeof found != 0) {
    refuse(work, need, CompletionStatus::kRemoteInvalidRequest, AccessError::kNone);
    return Advance::kOver;
  }
  memory::AccessGuard& there = parts_.peer->memory();
  const RemoteRange range{work.address, sizeof found, RegionKey{work.key}};
  const memory::Grant grant =
      there.check_and_pin({domain, need, destination_}, need, {&range, 1}, sizeof found);
  if (!grant.ok()) {
    refuse(work, need, CompletionStatus::kRemoteAccess, grant.error);
    return Advance::kOver;
  }
  const LocalRange target = grant.segments[0];
  const LocalRange here{&found, sizeof found};
  shm::PeerProcess& process = parts_.peer->process();
  int error = there.lock(0, memory::LockWait::kUsual);
  if (error == 0) {
    error = process.confirmed()
                ? os::copy_process_memory(process.pid(), os::CopyDirection::kFromProcess,
                                          {&here, 1}, {&target, 1})
                : ESRCH;
    std::uint64_t value = compares ? work.swap_or_add : found + work.swap_or_add;
    const LocalRange after{&value, sizeof value};
    if (error == 0 && value != found && (!compares || found == work.compare)) {
      error = os::copy_process_memory(process.pid(), os::CopyDirection::kToProcess, {&after, 1},
                                      {&target, 1});
    }
    there.unlock();
  }
  if (error != 0) return copy_failed(error == EFAULT ? EIO : error, request, need);
  *work.original = found;
  request.done = work.length;
  return Advance::kOver;
}

// The receive half

std::uint16_t MemoryLink::postpones(std::uint32_t source, const MessageHead& head) {
  if (source_.value_or(source) != source) return answer_of(AnswerKind::kNotThere);
  source_ = source;
  if (!head.has(kFirstPart) || head.has(kAfterRefusal) || within_) return 0;
  const work::RequestVerdict verdict =
      head.has(kAfterWrite) ? parts_.target.may_report_immediate() : parts_.target.message_begins();
  begun_ = verdict.ok();
  if (begun_) return 0;
  if (verdict.kind != work::RequestVerdict::Kind::kNotReady) refused_ = true;
  return answer_of(verdict, rnr_timer_);
}

std::uint16_t MemoryLink::take_message(std::uint32_t source, const MessageHead& head,
                                       std::span<const std::byte> bytes) {
  if (source_ != source) return answer_of(AnswerKind::kNotThere);
  work::RequestVerdict verdict = work::kInvalidRequest;
  const work::MessageEnd end{head.has(kWithImmediate), false, head.has(kSolicitedEvent),
                             head.immediate, 0};
  if (head.has(kAfterRefusal)) {
    note_refusal(bytes);
  } else if (head.has(kAfterWrite)) {
    std::uint32_t length = 0;
    if (bytes.size() == sizeof length && !within_ && std::exchange(begun_, false)) {
      std::memcpy(&length, bytes.data(), sizeof length);
      parts_.target.written({0, 0, length}, end);
      return 0;
    }
  } else if (head.has(kFirstPart) != within_ && begun_) {
    verdict = bytes.empty() ? work::RequestVerdict{} : parts_.target.message_goes_on(bytes);
    within_ = !head.has(kLastPart);
    begun_ = within_;
    if (verdict.ok() && !within_) parts_.target.message_ends(end);
  }
  if (!verdict.ok()) refused_ = true;
  return answer_of(verdict, rnr_timer_);
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
