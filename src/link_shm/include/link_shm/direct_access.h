// SPDX-License-Identifier: BSD-2-Clause
// How does an initiator carry out one-sided operations in the memory of another process itself?
#pragma once

#include <memory>
#include <span>

#include "link/flow.h"
#include "link_shm/peer_slot.h"
#include "link_shm/ring_writer.h"
#include "memory/access_guard.h"

namespace weft::shm {

// Checks each operation by the region table of the peer and copies by process_vm_readv(2) and
// process_vm_writev(2). Attaches to the table for the first operation. Slot and ring outlive it.
// One thread.
class DirectAccess {
 public:
  DirectAccess(PeerSlot& slot, RingWriter& ring);

  // Done, or failed as link::Flow says; kAgain without a cell in which the owner can be told of the
  // access, if it asked for that, and one more.
  link::Outcome carry_out(const link::AccessRequest& request);
  link::Outcome carry_out(const link::AtomicRequest& request);
  // As link::Flow says.
  RefusedAccess refused(int reason, std::span<const RemoteRange> remote) const;

 private:
  Result<std::shared_ptr<memory::RegionTableView>> open_table() const;
  Status attach_to_table();
  link::Outcome pin(Access served, Access need, std::span<const RemoteRange> ranges,
                    std::span<const LocalRange>& targets, std::size_t element = 0);
  void note_refusal(Access need, const RemoteRange& range, std::size_t element);
  int change(const link::AtomicRequest& request, std::size_t offset, std::size_t segment);
  link::Outcome end_access(int error, Access access);
  void report_access(Access access);

  PeerSlot& slot_;
  RingWriter& ring_;
  const DomainId domain_;
  const ServedAccess served_;          // by the peer's endpoint
  const std::uint32_t endpoint_;       // its number
  const std::uint32_t authorization_;  // that of its key
  std::uint32_t noted_at_ = 0;         // in seconds: when the owner was told of a refusal
  std::unique_ptr<memory::AccessGuard> table_;
};

}  // namespace weft::shm
