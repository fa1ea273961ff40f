// SPDX-License-Identifier: BSD-2-Clause
// How does an initiator carry out one-sided operations in the memory of another process itself?
//
// An atomic operation holds the stripes of that memory while it reads, computes and writes. Every
// atomic operation on that memory takes the same stripes, the owner's included.
#include "link_shm/direct_access.h"

#include <cerrno>
#include <chrono>
#include <cstring>

#include "memory/atomic_kernels.h"
#include "os/clock.h"
#include "os/process_memory.h"
#include "os/user_memory.h"

namespace weft::shm {

using link::Outcome;

DirectAccess::DirectAccess(PeerSlot& slot, RingWriter& ring)
    : slot_(slot),
      ring_(ring),
      domain_{slot.mailbox().domain},
      served_(slot.mailbox().served),
      endpoint_(slot.mailbox().endpoint),
      authorization_(slot.mailbox().authorization & kMaxAuthorizations) {}

Result<std::shared_ptr<memory::RegionTableView>> DirectAccess::open_table() const {
  const Sender& sender = slot_.sender();
  if (slot_.owner_is_this_process() && sender.own_regions != nullptr) return sender.own_regions;
  char name[sizeof slot_.mailbox().table];
  std::memcpy(name, slot_.mailbox().table, sizeof name);
  name[sizeof name - 1] = '\0';
  return memory::RegionTableView::open(
      sender.directory, name,
      sender.own_regions != nullptr ? sender.own_regions->stripes() : nullptr);
}

Status DirectAccess::attach_to_table() {
  auto table = open_table();
  if (!table) return table.error();
  auto user = memory::AccessGuard::attach(std::move(table).value());
  if (!user) return user.error();
  table_ = std::move(user).value();
  return {};
}

// Done: the regions are pinned, and `targets` says where they are in the owner.
Outcome DirectAccess::pin(Access served, Access need, std::span<const RemoteRange> ranges,
                          std::span<const LocalRange>& targets, std::size_t element) {
  if (ring_.gone()) return Outcome::failed(ECONNRESET);
  if (table_ == nullptr) {
    const Status attached = attach_to_table();
    // A living peer's table is there; it is gone when the peer is.
    if (!attached) {
      return Outcome::failed(slot_.owner().holds_lock() ? attached.error().code : ECONNRESET);
    }
  }
  const memory::Grant grant = table_->check_and_pin({domain_, served, endpoint_, authorization_},
                                                    need, ranges, element != 0 ? element : 1);
  if (grant.ok() && table_->device_memory().copier != nullptr) [[unlikely]] {
    table_->release();
    return Outcome::failed(EACCES, static_cast<int>(memory::AccessError::kNotServed));
  }
  if (grant.ok()) {
    targets = grant.segments;
    // A cell to tell of it, and one more that OneSided counts on.
    if (table_->keys_to_report().empty() || ring_.room_for(2)) [[likely]]
      return Outcome::done();
    table_->release();
    return Outcome::again();
  }
  // A dead process leaves no regions: say that it is dead, not that its region is unknown.
  if (!slot_.owner().holds_lock()) return Outcome::failed(ECONNRESET);
  note_refusal(need, ranges[grant.culprit], element);
  return Outcome::failed(EACCES, static_cast<int>(grant.error));
}

RefusedAccess DirectAccess::refused(int reason, std::span<const RemoteRange> remote) const {
  if (table_ == nullptr) return refused_of(reason, remote);
  return table_->refused(static_cast<memory::AccessError>(reason), remote);
}

// Tells the owner, which warns its user. As it does that once a second at most, the ring carries no
// more than that, and none that has no room.
void DirectAccess::note_refusal(Access need, const RemoteRange& range, std::size_t element) {
  const auto since_boot = os::coarse_now().time_since_epoch();
  const auto second = static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::seconds>(since_boot).count());
  if (second == noted_at_ || !ring_.room_for(1)) return;
  noted_at_ = second;
  ring_.next_cell().refused = {range.length, need, static_cast<std::uint32_t>(element)};
  link::SendRequest where;
  where.tag = range.address;
  where.data = range.key.v;
  ring_.publish(where, CellKind::kRefused);
}

Outcome DirectAccess::carry_out(const link::AccessRequest& request) {
  std::span<const LocalRange> targets;
  const Access need = request.write ? Access::kRemoteWrite : Access::kRemoteRead;
  const Outcome pinned = pin(served_.rma, need, request.remote, targets);
  if (pinned.state != Outcome::State::kDone) return pinned;
  const auto direction =
      request.write ? os::CopyDirection::kToProcess : os::CopyDirection::kFromProcess;
  int error = os::copy_process_memory(slot_.owner().pid(), direction, request.local, targets);
  // If this process was stopped meanwhile, the bytes may be those of another process.
  if (error == 0 && !request.write && !slot_.owner().confirmed()) error = ESRCH;
  return end_access(error, need);
}

Outcome DirectAccess::carry_out(const link::AtomicRequest& request) {
  std::span<const LocalRange> targets;
  const Access need = memory::rights_for(request.action);
  const Outcome pinned =
      pin(served_.atomics, need, request.remote, targets, size_of(request.action.type));
  if (pinned.state != Outcome::State::kDone) return pinned;
  int error = 0;
  std::size_t offset = 0;
  for (std::size_t i = 0; i < targets.size() && error == 0; ++i) {
    error = change(request, offset, i);
    offset += targets[i].length;
  }
  return end_access(error, need);
}

// Does the part of the operation that begins at `offset` of its bytes, in this segment of the
// grant. Returns 0 or an errno.
int DirectAccess::change(const link::AtomicRequest& request, std::size_t offset,
                         std::size_t segment) {
  const LocalRange& target = table_->granted()[segment];
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
  const pid_t owner = slot_.owner().pid();
  if (const int busy = table_->lock(segment, memory::LockWait::kUsual)) return busy;
  int error =
      os::copy_process_memory(owner, os::CopyDirection::kFromProcess, {&before, 1}, {&target, 1});
  if (error == 0) {
    std::memcpy(value, initial, length);
    memory::apply(action, value, operand, compare, length);
  }
  if (error == 0 && std::memcmp(value, initial, length) != 0) {
    error =
        os::copy_process_memory(owner, os::CopyDirection::kToProcess, {&after, 1}, {&target, 1});
  }
  table_->unlock();
  if (error != 0 || !action.fetches()) return error;
  return os::scatter(request.result, initial, length, offset) ? 0 : EFAULT;
}

// Lets the regions go, and tells their owner where it asked for that. The owner was reached when
// the slot was claimed: a process that is ending first loses its memory (EPERM) and then its number
// (ESRCH).
Outcome DirectAccess::end_access(int error, Access access) {
  table_->release();
  if (error != 0) return Outcome::failed(error == ESRCH || error == EPERM ? ECONNRESET : error);
  if (!table_->keys_to_report().empty()) [[unlikely]]
    report_access(access);
  return Outcome::done();
}

void DirectAccess::report_access(Access access) {
  AccessedPayload& note = ring_.next_cell().accessed;
  note.access = access;
  note.count = 0;
  for (const RegionKey key : table_->keys_to_report()) note.keys[note.count++] = key.v;
  ring_.publish({}, CellKind::kAccessed);
}

}  // namespace weft::shm
