// SPDX-License-Identifier: BSD-2-Clause
// In which order do the operations of a flow become work requests?
#include "work_queue.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "flow_table.h"
#include "link/peer_error.h"
#include "memory/access_guard.h"
#include "os/user_memory.h"
#include "shared.h"
#include "user_buffers.h"

namespace weft::rdm {

using link::Outcome;
using work::Segment;
using work::Work;

namespace {

// Operations in flight; beyond that a post answers kAgain.
constexpr std::size_t kMostOperations = 1024;
// Below so many packets in flight, or above this time between messages, latency counts and a
// message is sent at once; otherwise it may wait to fill a train.
constexpr unsigned kFewPackets = 2;
constexpr auto kPlentyOfTime = std::chrono::microseconds(2);
// Larger messages have packets of their own.
constexpr std::size_t kMaxCoalesced = 1024;

int errno_of(work::CompletionStatus status) {
  using enum work::CompletionStatus;
  if (status == kSuccess) return 0;
  if (status == kRemoteAccess) return EACCES;
  if (status == kRemoteOperation || status == kLocalProtection) return EFAULT;
  const bool lost = status == kRetryExceeded || status == kRnrRetryExceeded || status == kFlushed;
  return lost ? ECONNRESET : EPROTO;
}

Segment segment_of(const LocalRange& buffer) { return {buffer.base, buffer.length}; }

// A refusal as the peer states it; kNone for a number that means none.
int known_access_error(std::uint64_t stated) {
  const bool known = stated <= static_cast<std::uint64_t>(memory::kLastAccessError);
  return known ? static_cast<int>(stated) : 0;
}

}  // namespace

transport::Requester& WorkQueue::open(const transport::Settings& settings) {
  return requester_.emplace(settings, static_cast<work::WorkSink&>(*this), user_buffers());
}

void WorkQueue::post_early() {
  for (Early& each : std::exchange(early_, {})) {
    each.work.sges = each.sges;
    requester_->post(each.work);
  }
}

void WorkQueue::fail(int error) {
  coalesced_ = nullptr;
  if (requester_) requester_->fail(work::CompletionStatus::kFlushed);
  early_.clear();
  while (operations_.count() != 0) {
    RdmOperation& operation = operations_.live().front();
    if (operation.failure.error == 0) operation.failure.error = error;
    operations_.end(operation);
  }
}

Outcome WorkQueue::may_begin() const {
  if (flow_.phase() == FlowPhase::kLost) return Outcome::failed(ECONNRESET);
  return operations_.count() >= kMostOperations ? Outcome::again() : Outcome::done();
}

void WorkQueue::name(RdmOperation& operation) {
  operation.rendezvous_id = shared_.named_operations.name(operation);
}

Outcome WorkQueue::fault(RdmOperation& operation) {
  operations_.drop(operation);
  return Outcome::failed(EFAULT);
}

// Work that is posted before the peer has answered waits in the order of its posting. A read that
// has to be repeated must find the bytes from before any write that was posted after it.
void WorkQueue::post(RdmOperation& operation, Work work) {
  post_coalesced();
  ++operation.works;
  work.prompt = operation.reported && !operation.awaits_answer;
  work.fence = operation.follows_reads && operations_.any_reads();
  work.cookie = &operation;
  if (flow_.is_open()) return requester_->post(work);
  early_.push_back({work, {work.sges.begin(), work.sges.end()}});
}

void WorkQueue::post_header(RdmOperation& operation, const MessageHeader& header,
                            std::size_t copied, std::span<const LocalRange> rest,
                            std::uint64_t length) {
  write_header(header, operation.copy.data());
  Segment sges[1 + link::kMaxLinkSges] = {{operation.copy.data(), kMessageHeader + copied}};
  std::transform(rest.begin(), rest.end(), sges + 1, segment_of);
  Work work;
  work.sges = {sges, 1 + rest.size()};
  work.length = kMessageHeader + copied + length;
  post(operation, work);
}

void WorkQueue::post_access(RdmOperation& operation, const Work& work,
                            std::span<const LocalRange> local, std::uint64_t offset) {
  Segment sges[link::kMaxLinkSges];
  std::transform(local.begin(), local.end(), sges, segment_of);
  work::post_in_parts(work, {sges, local.size()}, offset,
                      [&](const Work& part) { return post(operation, part), true; });
}

// Small messages leave at once where hardly anything is in flight: otherwise they share a train.
void WorkQueue::started(RdmOperation& operation) {
  if (--operation.works == 0 && !operation.awaits_answer) return operations_.end(operation);
  flow_.limit_asking();
  if (requester_) {
    const os::Time now = shared_.host.now();
    if (!waits(now)) {
      shared_.flows->emission().send_now(flow_.context(), now);
      // The time that the system call takes does not count.
      if (requester_->under_way() > kFewPackets) sent_at_ = shared_.host.now();
      return;
    }
  }
  shared_.flows->emission().activate(flow_.context());
}

bool WorkQueue::waits(os::Time now) const {
  return requester_->under_way() > kFewPackets && now - sent_at_ < kPlentyOfTime;
}

void WorkQueue::post_control(const MessageHeader& header) {
  RdmOperation& operation = begin(nullptr, false);
  operation.copy.resize(kMessageHeader);
  post_header(operation, header, 0);
  --operation.works;
}

void WorkQueue::send_control(const MessageHeader& header, std::span<const std::byte> bytes) {
  if (flow_.phase() != FlowPhase::kLost) send_message(begin(nullptr, false), header, bytes);
}

void WorkQueue::answer(const MessageHeader& header, std::span<const std::byte> bytes) {
  if (flow_.phase() == FlowPhase::kLost) return;
  RdmOperation& operation = begin(nullptr, false);
  operations_.charge_answer(operation, bytes.size());
  send_message(operation, header, bytes);
}

void WorkQueue::send_message(RdmOperation& operation, const MessageHeader& header,
                             std::span<const std::byte> bytes) {
  operation.copy.resize(kMessageHeader + bytes.size());
  if (!bytes.empty()) {
    std::memcpy(operation.copy.data() + kMessageHeader, bytes.data(), bytes.size());
  }
  post_header(operation, header, bytes.size());
  started(operation);
}

// Small messages share a packet while others are in flight: until the next poll, or until it is
// full.
bool WorkQueue::may_join(const link::SendRequest& request) const {
  if (!flow_.is_open() || request.until_delivered || request.length > kMaxCoalesced) return false;
  if (operations_.any_reads()) return false;
  return coalesced_ != nullptr || waits(shared_.host.now());
}

Outcome WorkQueue::join(const link::SendRequest& request) {
  const std::size_t length = kMessageHeader + request.length;
  const std::size_t room = requester_->settings().path_mtu;
  if (coalesced_ != nullptr && coalesced_->copy.size() + length > room) post_coalesced();
  if (coalesced_ == nullptr) {
    coalesced_ = &begin(nullptr, false);
    coalesced_->copy.reserve(room);
    coalesced_->copy.resize(kMessageHeader);
  }
  const std::size_t at = coalesced_->copy.size();
  coalesced_->copy.resize(at + length);
  write_header(header_of(request, true), coalesced_->copy.data() + at);
  shared_.flows->emission().activate(flow_.context());
  if (os::gather(coalesced_->copy.data() + at + kMessageHeader, request.sges, request.length)) {
    return Outcome::done();
  }
  coalesced_->copy.resize(at);
  return Outcome::failed(EFAULT);
}

void WorkQueue::post_coalesced() {
  if (coalesced_ == nullptr) return;
  RdmOperation& coalesced = *std::exchange(coalesced_, nullptr);
  MessageHeader header;
  header.kind = MessageKind::kCoalesced;
  post_header(coalesced, header, coalesced.copy.size() - kMessageHeader);
  --coalesced.works;
}

bool WorkQueue::take_back(RdmOperation& operation) {
  if (operation.works != 1) return false;
  const std::size_t waiting =
      std::erase_if(early_, [&](const Early& early) { return early.work.cookie == &operation; });
  if (waiting == 0 && !(requester_ && requester_->withdraw(&operation))) return false;
  operation.works = 0;
  operation.failure.error = ECANCELED;
  operations_.end(operation);
  return true;
}

// An answer also acknowledges its request.
void WorkQueue::answered(RdmOperation& operation, const MessageHeader& header,
                         std::span<const std::byte> bytes, os::Time now) {
  if (!operation.awaits_answer) return;
  RdmOperation::Failure& failure = operation.failure;
  if (header.kind == MessageKind::kResult) {
    failure.error = link::known_error(header.tag, EPROTO);
    failure.detail = known_access_error(header.length);
    if (failure.error == 0 && bytes.size() != operation.length) failure.error = EPROTO;
    if (failure.error == 0 && !os::scatter(operation.buffers(), bytes.data(), bytes.size())) {
      failure.error = EFAULT;
    }
  }
  // A message that this end receives is written; an answer can only say that it will not be.
  if (operation.takes && failure.error == 0) failure.error = EPROTO;
  has_answer(operation, now);
}

void WorkQueue::has_answer(RdmOperation& operation, os::Time now) {
  operation.awaits_answer = operation.offered = false;
  if (operation.works == 0) return operations_.end(operation);
  if (!requester_) return;
  requester_->arrived(&operation, now);
  shared_.flows->emission().activate(flow_.context());
}

void WorkQueue::detach(RdmOperation& receive) {
  shared_.named_operations.forget(std::exchange(receive.rendezvous_id, 0));
  receive.takes = receive.borrows = receive.awaits_answer = false;
  if (receive.works == 0) operations_.end(receive);
}

void WorkQueue::abandon(RdmOperation& receive) {
  shared_.ended_receives.push_back({receive.cookie, ECONNRESET});
  detach(receive);
}

void WorkQueue::ended(const work::Ended& work) {
  RdmOperation& operation = *static_cast<RdmOperation*>(work.cookie);
  --operation.works;
  if (work.status != work::CompletionStatus::kSuccess && operation.failure.error == 0) {
    const bool copy_failed = work.detail == memory::kCopyFailed;
    operation.failure.error = copy_failed ? EIO : errno_of(work.status);
    operation.failure.detail = known_access_error(work.detail);
  }
  if (operation.works == 0 && (!operation.awaits_answer || operation.failure.error != 0))
    operations_.end(operation);
}

bool WorkQueue::owes() const {
  if (flow_.phase() == FlowPhase::kAsking) return !early_.empty();
  return flow_.is_open() && (requester_->busy() || coalesced_ != nullptr);
}

void WorkQueue::trim() {
  if (requester_) requester_->trim();
  operations_.trim();
  early_.shrink_to_fit();
}

}  // namespace weft::rdm
