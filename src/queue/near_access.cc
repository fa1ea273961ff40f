// SPDX-License-Identifier: BSD-2-Clause
// How does an initiator carry out a one-sided operation within its host?
#include "near_access.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/slices.h"
#include "memory/local_access.h"
#include "os/user_memory.h"

namespace weft::queue {

using memory::AccessError;
using memory::kHazards;
using os::CopyDirection;
using work::CompletionStatus;
using work::WorkKind;
using How = NearOutcome::How;

namespace {

Access need_of(const work::Work& work) {
  if (work.kind == WorkKind::kRead) return Access::kRemoteRead;
  return work.kind == WorkKind::kWrite ? Access::kRemoteWrite : Access::kRemoteAtomic;
}

// The last cache line of a WRITE is an entry of its own, so that the kernel copies it last:
// programs poll the last byte.
std::size_t cut_last_line(std::span<const LocalRange> ranges, LocalRange* out) {
  std::copy(ranges.begin(), ranges.end(), out);
  if (ranges.empty()) return 0;
  LocalRange& last = out[ranges.size() - 1];
  const auto base = reinterpret_cast<std::uintptr_t>(last.base);
  const std::uintptr_t line = (base + last.length - 1) & ~std::uintptr_t{kCacheLine - 1};
  if (last.length == 0 || line <= base) return ranges.size();
  out[ranges.size()] = {reinterpret_cast<void*>(line), base + last.length - line};
  last.length = line - base;
  return ranges.size() + 1;
}

}  // namespace

struct NearAccess::Piece {
  Piece(const NearWork& request, std::uint64_t most)
      : buffers(request.list(), request.done, std::min(most, request.work.length - request.done)) {
    const RemoteRange& first = buffers.keys[0];
    if (buffers.count == 0 || first.key.v != 0) return;
    copied = {reinterpret_cast<void*>(first.address), first.length};
    here = {&copied, 1};
  }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;

  const memory::BufferRanges buffers;
  LocalRange copied;                 // inline data
  std::span<const LocalRange> here;  // empty: not pinned yet
};

void NearAccess::release() {
  local_.release();
  peer_->memory().release();
  peer_->pairs().release();
}

NearOutcome NearAccess::carry_out(NearWork& request, std::uint64_t& budget) {
  const Access need = need_of(request.work);
  const Pins pins(*this);
  if (const NearOutcome pair = pin_pair(request.work, need); !pair.done()) return pair;
  return need == Access::kRemoteAtomic ? change(request) : copy(request, need, budget);
}

// The queue pair of the target stays as it is while it is pinned. An extended reliable connection
// names a shared receive queue of the same XRC domain besides, whose protection domain counts.
NearOutcome NearAccess::pin_pair(const work::Work& work, Access need) {
  const RemoteRange entries[] = {{0, 1, RegionKey{destination_}},
                                 {0, 1, key_of_shared(work.shared_receive)}};
  const memory::Grant grant = peer_->pairs().check_and_pin({kDomainOfQueuePairs, need, qpn_}, need,
                                                           {entries, extended_ ? 2U : 1U});
  if (grant.ok()) {
    const QueueEntry pair = QueueEntry::of(grant.segments[0].base);
    const QueueEntry named = QueueEntry::of(grant.segments.back().base);
    domain_there_ = named.domain;
    if (pair.group == named.group) return {};
  } else if (grant.error == AccessError::kDisabled) {
    return {How::kByPackets};
  } else if (grant.error == AccessError::kNoRight) {
    return {How::kRefused, CompletionStatus::kRemoteInvalidRequest, AccessError::kNotServed, need};
  } else if (grant.culprit == 0) {
    return {How::kNotThere};
  }
  return {How::kRefused, CompletionStatus::kRemoteInvalidRequest};
}

NearOutcome NearAccess::pin_here(Piece& piece, bool writes) {
  if (!piece.here.empty()) return {};
  const Access right = writes ? kLocalRead : kLocalWrite;
  const memory::Grant grant = local_.check_and_pin({domain_, right}, right, piece.buffers.ranges());
  if (!grant.ok()) return {How::kFailed, CompletionStatus::kLocalProtection, grant.error};
  piece.here = grant.segments;
  return {};
}

// The first piece is refused where the whole operation is.
NearOutcome NearAccess::pin_there(const NearWork& request, const Piece& piece, Access need) {
  const work::Work& work = request.work;
  const RemoteRange whole{work.address, work.length, RegionKey{work.key}};
  const RemoteRange part{work.address + request.done, piece.buffers.length, RegionKey{work.key}};
  memory::AccessGuard& there = peer_->memory();
  const auto allowed = [&](const RemoteRange& range) {
    return there.check_and_pin({domain_there_, need, destination_}, need, {&range, 1}).error;
  };
  AccessError error = AccessError::kNone;
  if (request.done == 0 && piece.buffers.length != work.length) error = allowed(whole);
  if (error == AccessError::kNone) error = allowed(part);
  if (error == AccessError::kNone) return {};
  return {How::kRefused, CompletionStatus::kRemoteAccess, error, need};
}

// The remote key of a READ is checked first, the local keys of a WRITE.
NearOutcome NearAccess::copy(NearWork& request, Access need, std::uint64_t& budget) {
  const bool writes = need == Access::kRemoteWrite;
  while (request.done < request.work.length) {
    if (budget == 0) return {How::kGoesOn};
    Piece piece(request, budget);
    NearOutcome pinned = writes ? pin_here(piece, true) : pin_there(request, piece, need);
    if (!pinned.done()) return pinned;
    pinned = writes ? pin_there(request, piece, need) : pin_here(piece, false);
    if (!pinned.done()) return pinned;
    LocalRange cut[memory::kMaxSegments + 1];
    std::span<const LocalRange> there = peer_->memory().granted();
    if (writes) there = {cut, cut_last_line(there, cut)};
    const int error =
        move(piece.here, there, writes ? CopyDirection::kToProcess : CopyDirection::kFromProcess);
    if (error != 0) return failure_of(error, piece.here, need);
    request.done += piece.buffers.length;
    budget -= piece.buffers.length;
  }
  return {};
}

// Each WRITE is one region there, and all local keys fit one grant.
bool NearAccess::write_together(NearWork* const* works, std::size_t count) {
  RemoteRange keys[kHazards];
  RemoteRange ranges[kHazards];
  std::size_t entries = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const NearWork& each = *works[i];
    ranges[i] = {each.work.address, each.work.length, RegionKey{each.work.key}};
    for (const work::Segment& sge : each.list()) keys[entries++] = memory::range_of(sge);
  }
  const Pins pins(*this);
  constexpr Access kNeed = Access::kRemoteWrite;
  if (!pin_pair(works[0]->work, kNeed).done()) return false;
  const memory::Grant here =
      local_.check_and_pin({domain_, kLocalRead}, kLocalRead, {keys, entries});
  if (!here.ok()) return false;
  const memory::Grant there =
      peer_->memory().check_and_pin({domain_there_, kNeed, destination_}, kNeed, {ranges, count});
  if (!there.ok() || there.segments.size() != count) return false;
  LocalRange cut[2 * kHazards];
  std::size_t pieces = 0;
  for (const LocalRange& each : there.segments) pieces += cut_last_line({&each, 1}, cut + pieces);
  return move(here.segments, {cut, pieces}, CopyDirection::kToProcess) == 0;
}

// ESRCH when the memory may not be the peer's.
int NearAccess::move(std::span<const LocalRange> here, std::span<const LocalRange> there,
                     CopyDirection direction) {
  shm::PeerProcess& process = peer_->process();
  if (!process.confirmed()) return ESRCH;
  const int error = os::copy_process_memory(process.pid(), direction, here, there);
  const bool reads = direction == CopyDirection::kFromProcess;
  return error == 0 && reads && !process.confirmed() ? ESRCH : error;
}

// EFAULT does not tell which side has a page that is missing.
NearOutcome NearAccess::failure_of(int error, std::span<const LocalRange> here, Access need) {
  if (error == ESRCH) return {How::kFailed, CompletionStatus::kRetryExceeded};
  if (error == EPERM || error == ENOSYS) return {How::kByPackets};
  const bool reads_here = need == Access::kRemoteWrite;
  const bool is_here =
      error != EFAULT || (reads_here ? os::readable(here) : os::writable(here, total_length(here)));
  if (!is_here) return {How::kFailed, CompletionStatus::kLocalProtection};
  return {How::kRefused, CompletionStatus::kRemoteOperation, AccessError::kNone, need};
}

NearOutcome NearAccess::change(NearWork& request) {
  constexpr Access kNeed = Access::kRemoteAtomic;
  work::Work& work = request.work;
  std::uint64_t found = 0;
  if (work.address % sizeof found != 0) {
    return {How::kRefused, CompletionStatus::kRemoteInvalidRequest};
  }
  memory::AccessGuard& there = peer_->memory();
  const RemoteRange range{work.address, sizeof found, RegionKey{work.key}};
  const memory::Grant grant =
      there.check_and_pin({domain_there_, kNeed, destination_}, kNeed, {&range, 1}, sizeof found);
  if (!grant.ok()) return {How::kRefused, CompletionStatus::kRemoteAccess, grant.error, kNeed};
  const bool compares = work.kind == WorkKind::kCompareSwap;
  const LocalRange before{&found, sizeof found};
  int error = there.lock(0, memory::LockWait::kUsual);
  if (error == 0) {
    error = move({&before, 1}, {grant.segments.data(), 1}, CopyDirection::kFromProcess);
    std::uint64_t value = compares ? work.swap_or_add : found + work.swap_or_add;
    const LocalRange after{&value, sizeof value};
    if (error == 0 && value != found && (!compares || found == work.compare)) {
      error = move({&after, 1}, {grant.segments.data(), 1}, CopyDirection::kToProcess);
    }
    there.unlock();
  }
  // The bytes of this end are its own variables.
  if (error != 0) return failure_of(error == EFAULT ? EIO : error, {}, kNeed);
  *work.original = found;
  request.done = work.length;
  return {};
}

// No right of the peer's queue pair is needed: it has asked for this itself.
NearAccess::Pull::Pull(NearAccess& access, std::span<const RemoteRange> buffers)
    : access_(access), pins_(access) {
  NearPeer& peer = *access.peer_;
  const RemoteRange entry{0, 1, RegionKey{access.destination_}};
  const memory::Grant pair = peer.pairs().check_and_pin(
      {kDomainOfQueuePairs, Access::kNone, access.qpn_}, Access::kNone, {&entry, 1});
  if (!pair.ok()) {
    outcome_.how = pair.error == AccessError::kDisabled ? How::kByPackets : How::kNotThere;
    return;
  }
  const DomainId domain = QueueEntry::of(pair.segments[0].base).domain;
  const memory::Grant memory =
      peer.memory().check_and_pin({domain, kLocalRead}, kLocalRead, buffers);
  if (!memory.ok()) outcome_ = {How::kRefused, CompletionStatus::kLocalProtection, memory.error};
}

int NearAccess::Pull::copy(std::uint64_t offset, std::span<const LocalRange> here) {
  LocalRange there[memory::kHazards * memory::kMaxSegments];
  const std::size_t count =
      slice<LocalRange>(access_.peer_->memory().granted(), offset, total_length(here), there);
  return access_.move(here, {there, count}, CopyDirection::kFromProcess);
}

}  // namespace weft::queue
