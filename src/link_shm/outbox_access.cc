// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint access the memory of another process of its host?
#include <cstring>

#include "link_shm/outbox.h"
#include "os/process_memory.h"

namespace weft::shm {

using link::Outcome;
using link::SendRequest;

// Why no access may start now: an errno, or 0. The owner may have gone, and its process id may mean
// another process by now.
int Outbox::unusable() {
  if (!peer_.confirmed()) gone_ = true;
  if (gone_) return ECONNRESET;
  return unanswered_ && assisted_unanswered() ? ETIMEDOUT : 0;
}

Result<std::shared_ptr<memory::RegionTableView>> Outbox::open_table() const {
  if (to_itself_ && sender_.own_regions != nullptr) return sender_.own_regions;
  char name[sizeof header().table];
  std::memcpy(name, header().table, sizeof name);
  name[sizeof name - 1] = '\0';
  return memory::RegionTableView::open(sender_.directory, name);
}

Status Outbox::attach_to_table() {
  auto table = open_table();
  if (!table) return table.error();
  auto user = memory::AccessGuard::attach(std::move(table).value());
  if (!user) return user.error();
  table_ = std::move(user).value();
  return {};
}

// Done: the regions are pinned, and `targets` says where they are in the owner.
Outcome Outbox::pin(Access served, Access need, std::span<const RemoteRange> ranges,
                    std::span<const LocalRange>& targets, std::string* explanation,
                    std::size_t element) {
  if (gone_) return Outcome::failed(ECONNRESET);
  if (table_ == nullptr) {
    const Status attached = attach_to_table();
    // A living peer's table is there; it is gone when the peer is.
    if (!attached) return Outcome::failed(is_there() ? attached.error().code : ECONNRESET);
  }
  const memory::Grant grant = table_->check_and_pin({domain_, served}, need, ranges, element);
  if (grant.ok()) {
    targets = grant.segments;
    // A cell to tell of it, and one more that access() or atomic() counts on.
    if (table_->to_tell().empty() || room_for_cells(2)) [[likely]]
      return Outcome::done();
    table_->release();
    return Outcome::again();
  }
  // A dead process leaves no regions: say that it is dead, not that its region is unknown.
  if (!is_there()) return Outcome::failed(ECONNRESET);
  if (explanation != nullptr) {
    *explanation = table_->explain(grant.error, need, ranges[grant.culprit]);
  }
  return Outcome::failed(EACCES, static_cast<int>(grant.error));
}

Outcome Outbox::access(const link::AccessRequest& request) {
  if (const int error = unusable()) return Outcome::failed(error);
  const bool counts = counted(request.write ? kCountsWrites : kCountsReads) || request.has_data;
  if (counts && !room_for_cell()) return Outcome::again();
  const Outcome outcome = fits_assisted(request.remote, kAssistedBytes, counts)
                              ? by_faster_method(choice_, request, &Outbox::access_directly)
                              : access_directly(request);
  if (counts && outcome.state == Outcome::State::kDone) {
    const auto operation = request.has_data ? link::Operation::kWriteData
                           : request.write  ? link::Operation::kWriteEvent
                                            : link::Operation::kReadEvent;
    announce(operation, request.has_data, request.data, request.length);
  }
  return outcome;
}

Outcome Outbox::access_directly(const link::AccessRequest& request) {
  std::span<const LocalRange> targets;
  const Access need = request.write ? Access::kRemoteWrite : Access::kRemoteRead;
  const Outcome pinned = pin(served_.rma, need, request.remote, targets, request.explanation);
  if (pinned.state != Outcome::State::kDone) return pinned;
  const auto direction =
      request.write ? os::CopyDirection::kToProcess : os::CopyDirection::kFromProcess;
  int error = os::copy_process_memory(peer_.pid(), direction, request.local, targets);
  // If this process was stopped meanwhile, the bytes may be those of another process.
  if (error == 0 && !request.write && !peer_.confirmed()) error = ESRCH;
  return end_access(error, need);
}

// Lets the regions go, and tells their owner where it asked for that. The owner was reached when
// the outbox was opened: a process that is ending first loses its memory (EPERM) and then its
// number (ESRCH).
Outcome Outbox::end_access(int error, Access access) {
  table_->release();
  if (error != 0) return Outcome::failed(error == ESRCH || error == EPERM ? ECONNRESET : error);
  if (!table_->to_tell().empty()) [[unlikely]]
    tell(access);
  return Outcome::done();
}

void Outbox::tell(Access access) {
  Cell& cell = next_cell();
  AccessedPayload& note = cell.accessed;
  note.access = access;
  note.count = 0;
  for (const RegionKey key : table_->to_tell()) note.keys[note.count++] = key.v;
  publish(cell, {}, Kind::kAccessed, false, 0);
}

void Outbox::announce(link::Operation operation, bool has_data, std::uint64_t data,
                      std::size_t length) {
  SendRequest note;
  note.operation = operation;
  note.has_data = has_data;
  note.data = data;
  note.tag = length;
  publish(next_cell(), note, Kind::kInline, false, 0);
}

}  // namespace weft::shm
