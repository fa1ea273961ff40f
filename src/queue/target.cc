// SPDX-License-Identifier: BSD-2-Clause
// How does a queue pair execute the requests of its peer?
#include "target.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/atomic_op.h"
#include "os/user_memory.h"

namespace weft::queue {

using memory::AccessError;
using work::CompletionStatus;
using work::RequestVerdict;

namespace {

constexpr RequestVerdict kNotReady{RequestVerdict::Kind::kNotReady, 0};
constexpr RequestVerdict kOperational{RequestVerdict::Kind::kOperational, 0};

RemoteRange range_of(const work::RemoteMemory& memory, std::uint64_t offset, std::uint64_t length) {
  return {memory.address + offset, length, RegionKey{memory.key}};
}

}  // namespace

QpTarget::QpTarget(memory::AccessGuard& guard, const ReceiveEnd& end, std::uint32_t qpn,
                   ReceiveSink& sink, SharedReceives* shared)
    : guard_(guard), end_(end), qpn_(qpn), sink_(sink), shared_(shared) {
  serve(Access::kNone);
}

void QpTarget::serve(Access access) {
  const auto only = [&](Access right) { return includes(access, right) ? right : Access::kNone; };
  served_ = {only(Access::kRemoteRead) | only(Access::kRemoteWrite), only(Access::kRemoteAtomic),
             true};
  local_.emplace(guard_, guard_, end_.domain);
  remote_.emplace(guard_, end_.domain, served_, qpn_);
}

// The peer's QP broke a rule of the queue pair itself, or one of the region (IBTA 9.7.4.1).
RequestVerdict QpTarget::verdict_of(const memory::Accessed& accessed, Access need,
                                    const RemoteRange& range) {
  refusal_ = accessed.refusal;
  if (refusal_ != AccessError::kNone) {
    is_new_ = true;
    refused_need_ = need;
    refused_range_ = range;
  }
  RequestVerdict verdict;
  verdict.detail = static_cast<std::uint8_t>(accessed.refusal);
  if (accessed.refusal == AccessError::kNotServed) {
    verdict.kind = RequestVerdict::Kind::kInvalid;
  } else if (accessed.refusal != AccessError::kNone) {
    verdict.kind = RequestVerdict::Kind::kAccess;
  } else if (accessed.error != 0) {
    verdict.kind = RequestVerdict::Kind::kOperational;
  }
  last_verdict_ = verdict.kind;
  return verdict;
}

RequestVerdict QpTarget::may_use(std::uint32_t shared_receive) {
  ReceiveEnd end;
  if (shared_ == nullptr || !shared_->find(shared_receive, end)) return work::kInvalidRequest;
  const bool moves = end.domain != end_.domain;
  end_ = end;
  shared_number_ = shared_receive;
  if (moves) {
    local_.emplace(guard_, guard_, end_.domain);
    remote_.emplace(guard_, end_.domain, served_, qpn_);
  }
  return {};
}

// The program may have destroyed the shared queue since a request has named it.
bool QpTarget::has_queue() {
  if (shared_ == nullptr || (end_.receives != nullptr && shared_->find(shared_number_, end_))) {
    return true;
  }
  end_.receives = nullptr;
  has_receive_ = false;
  return false;
}

RequestVerdict QpTarget::message_begins() {
  received_ = 0;
  return take_receive();
}

RequestVerdict QpTarget::may_report_immediate() { return take_receive(); }

// The receive has room for so many bytes more, else it ends.
bool QpTarget::has_room(std::uint64_t length) {
  if (length <= receive_.length - received_) return true;
  ReceiveEnding ended;
  ended.status = CompletionStatus::kLocalLength;
  end_receive(ended);
  return false;
}

// Its buffer may not be used.
RequestVerdict QpTarget::fail_receive(AccessError reason) {
  ReceiveEnding ended;
  ended.status = CompletionStatus::kLocalProtection;
  ended.reason = reason;
  end_receive(ended);
  return kOperational;
}

RequestVerdict QpTarget::message_goes_on(std::span<const std::byte> bytes) {
  if (!has_queue() || !has_room(bytes.size())) return work::kInvalidRequest;
  if (!local_->scatter(receive_.segments, received_, bytes)) {
    return fail_receive(local_->scatter_error());
  }
  received_ += bytes.size();
  return {};
}

RequestVerdict QpTarget::message_is_copied(std::uint64_t length, const Copy& copy, int& error) {
  if (!has_queue() || !has_room(length)) return work::kInvalidRequest;
  for (std::uint64_t done = 0; done < length;) {
    const memory::BufferRanges buffers(receive_.segments, received_, length - done);
    const memory::Grant here =
        guard_.check_and_pin({end_.domain, kLocalWrite}, kLocalWrite, buffers.ranges());
    if (!here.ok()) return fail_receive(here.error);
    error = copy(done, here.segments);
    const bool is_here = error != EFAULT || os::writable(here.segments, buffers.length);
    guard_.release();
    if (!is_here) return fail_receive(AccessError::kNone);
    if (error != 0) return {};
    done += buffers.length;
    received_ += buffers.length;
  }
  return {};
}

void QpTarget::end_receive(ReceiveEnding receive) {
  if (!has_queue()) return;
  receive.id = receive_.id;
  has_receive_ = false;
  sink_.received(receive, end_.completions);
}

void QpTarget::message_ends(const work::MessageEnd& end) {
  ReceiveEnding ended;
  ended.length = received_;
  ended.end = end;
  end_receive(ended);
}

RequestVerdict QpTarget::may_access(Access need, const work::RemoteMemory& memory) {
  const RemoteRange range = range_of(memory, 0, memory.length);
  return verdict_of(remote_->check(need, range), need, range);
}

void QpTarget::look(Access need, const work::RemoteMemory& memory, bool gone) {
  const RemoteRange range = range_of(memory, 0, memory.length);
  const std::size_t element = need == Access::kRemoteAtomic ? sizeof(std::uint64_t) : 0;
  const RequestVerdict verdict = verdict_of(remote_->check(need, range, element), need, range);
  if (verdict.ok() && gone) last_verdict_ = RequestVerdict::Kind::kOperational;
}

RequestVerdict QpTarget::write(const work::RemoteMemory& memory, std::uint64_t offset,
                               std::span<const std::byte> bytes) {
  const RemoteRange range = range_of(memory, offset, bytes.size());
  return verdict_of(remote_->write(range, bytes), Access::kRemoteWrite, range);
}

// Those of a shared queue may have gone when the message has ended.
RequestVerdict QpTarget::take_receive() {
  if (!has_queue() || end_.receives == nullptr) return work::kInvalidRequest;
  if (has_receive_) return {};
  has_receive_ = end_.receives->take(receive_);
  return has_receive_ ? RequestVerdict{} : kNotReady;
}

void QpTarget::written(const work::RemoteMemory& memory, const work::MessageEnd& end) {
  if (!end.has_immediate) return;
  ReceiveEnding ended;
  ended.opcode = CompletionOpcode::kReceiveWrite;
  ended.length = memory.length;
  ended.end = end;
  end_receive(ended);
}

RequestVerdict QpTarget::read(const work::RemoteMemory& memory, std::uint64_t offset,
                              std::span<std::byte> out) {
  const RemoteRange range = range_of(memory, offset, out.size());
  return verdict_of(remote_->read(range, out), Access::kRemoteRead, range);
}

RequestVerdict QpTarget::atomic(bool compares, const work::AtomicOperands& what,
                                std::uint64_t& original) {
  if (what.address % sizeof original != 0) return work::kInvalidRequest;
  const AtomicAction action =
      compares ? AtomicAction{AtomicForm::kCompare, AtomicOp::kSwapIfEqual, AtomicType::kUint64}
               : AtomicAction{AtomicForm::kFetch, AtomicOp::kSum, AtomicType::kUint64};
  const std::uint64_t operands[] = {what.swap_or_add, what.compare};
  const RemoteRange range{what.address, sizeof original, RegionKey{what.key}};
  return verdict_of(
      remote_->change(action, range, reinterpret_cast<const std::byte*>(operands),
                      reinterpret_cast<std::byte*>(&original), memory::LockWait::kUsual),
      Access::kRemoteAtomic, range);
}

bool QpTarget::datagram(std::span<const std::byte> header, std::span<const std::byte> bytes,
                        const work::MessageEnd& end, std::uint32_t source) {
  if (!message_begins().ok()) return false;
  ReceiveEnding ended;
  ended.length = header.size() + bytes.size();
  ended.end = end;
  ended.source = source;
  if (ended.length > receive_.length) {
    ended.status = CompletionStatus::kLocalLength;
  } else if (!local_->scatter(receive_.segments, 0, header) ||
             !local_->scatter(receive_.segments, header.size(), bytes)) {
    ended.status = CompletionStatus::kLocalProtection;
    ended.reason = local_->scatter_error();
  }
  end_receive(ended);
  return true;
}

void QpTarget::flush() {
  if (!has_receive_) return;
  ReceiveEnding ended;
  ended.status = CompletionStatus::kFlushed;
  end_receive(ended);
}

}  // namespace weft::queue
