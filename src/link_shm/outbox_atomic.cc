// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint carry out an atomic operation in the memory of another process of its host?
//
// As it accesses that memory: by itself, with what the region table allows. While it reads,
// computes and writes it holds the stripes of that memory in the owner's table. Every atomic
// operation on that memory takes the same stripes, the owner's included.
#include <cstring>

#include "link/local_buffers.h"
#include "link_shm/outbox.h"
#include "memory/atomic_kernels.h"
#include "os/process_memory.h"
#include "os/user_memory.h"

namespace weft::shm {

using link::Outcome;

Outcome Outbox::atomic(const link::AtomicRequest& request) {
  if (const int error = unusable()) return Outcome::failed(error);
  if (!link::buffers_mapped(request)) return Outcome::failed(EFAULT);
  const bool fetches = request.action.fetches();
  const bool counts = counted(fetches ? kCountsReads : kCountsWrites) || request.has_data;
  if (counts && !room_for_cell()) return Outcome::again();
  const Outcome outcome = fits_assisted(request.remote, kAtomicAssistedBytes, counts)
                              ? by_faster_method(atomic_choice_, request, &Outbox::atomic_directly)
                              : atomic_directly(request);
  if (counts && outcome.state == Outcome::State::kDone) {
    const auto event = fetches ? link::Operation::kReadEvent : link::Operation::kWriteEvent;
    const auto data =
        fetches ? link::Operation::kAtomicReadData : link::Operation::kAtomicWriteData;
    announce(request.has_data ? data : event, request.has_data, request.data, request.length);
  }
  return outcome;
}

Outcome Outbox::atomic_directly(const link::AtomicRequest& request) {
  std::span<const LocalRange> targets;
  const Access need = memory::rights_for(request.action);
  const Outcome pinned = pin(served_.atomics, need, request.remote, targets, request.explanation,
                             size_of(request.action.type));
  if (pinned.state != Outcome::State::kDone) return pinned;
  int error = 0;
  std::size_t offset = 0;
  for (const LocalRange& target : targets) {
    error = change(request, offset, target);
    if (error != 0) break;
    offset += target.length;
  }
  return end_access(error, need);
}

// Does the part of the operation that begins at `offset` of its bytes, at `target` in the owner.
// Returns 0 or an errno.
int Outbox::change(const link::AtomicRequest& request, std::size_t offset,
                   const LocalRange& target) {
  const AtomicAction& action = request.action;
  const std::size_t length = target.length;
  if (length == 0) return 0;
  std::byte operand[kMaxAtomicBytes];
  std::byte compare[kMaxAtomicBytes];
  std::byte initial[kMaxAtomicBytes];
  std::byte value[kMaxAtomicBytes];
  if (!os::gather(operand, request.operand, action.has_operand() ? length : 0, offset) ||
      !os::gather(compare, request.compare, action.compares() ? length : 0, offset)) {
    return EFAULT;
  }
  const LocalRange before{initial, length};
  const LocalRange after{value, length};
  const auto address = reinterpret_cast<std::uint64_t>(target.base);
  if (const int busy = table_->stripes().lock(address, length, memory::Patience::kUsual)) {
    return busy;
  }
  int error = os::copy_process_memory(peer_.pid(), os::CopyDirection::kFromProcess, {&before, 1},
                                      {&target, 1});
  if (error == 0) {
    std::memcpy(value, initial, length);
    memory::apply(action, value, operand, compare, length);
  }
  if (error == 0 && std::memcmp(value, initial, length) != 0) {
    error = os::copy_process_memory(peer_.pid(), os::CopyDirection::kToProcess, {&after, 1},
                                    {&target, 1});
  }
  table_->stripes().unlock();
  if (error != 0 || !action.fetches()) return error;
  return os::scatter(request.result, initial, length, offset) ? 0 : EFAULT;
}

}  // namespace weft::shm
