// SPDX-License-Identifier: BSD-2-Clause
// How does a process access its own registered memory for a peer?
//
// Every access is checked by the process's own region table, once. A region's memory may have gone
// without the region having been closed: that is an error (os/user_memory.h).
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/atomic_op.h"
#include "base/types.h"
#include "memory/access_guard.h"

namespace weft::memory {

// How an access ended.
struct Accessed {
  AccessError refusal = AccessError::kNone;  // which rule forbids it
  int error = 0;  // without a refusal: EFAULT when the memory has gone, EBUSY when others hold it

  bool ok() const { return refusal == AccessError::kNone && error == 0; }
};

// The regions of one domain, through one endpoint. Used by one thread at a time.
class OwnMemory {
 public:
  // `table` is that of this process; `endpoint` is the number that regions may be bound to,
  // `authorization` that of the endpoint's key (Through).
  OwnMemory(std::shared_ptr<RegionTableView> table, DomainId domain,
            const ServedAccess& served = {}, std::uint32_t endpoint = 0,
            std::uint32_t authorization = 0)
      : table_(std::move(table)),
        domain_(domain),
        served_(served),
        endpoint_(endpoint),
        authorization_(authorization) {}
  // The same through a guard that others use, too, and that outlives it: release() before another
  // one uses the guard.
  OwnMemory(AccessGuard& guard, DomainId domain, const ServedAccess& served, std::uint32_t endpoint)
      : guard_(&guard), domain_(domain), served_(served), endpoint_(endpoint) {}

  // Accesses may need these rights from now on.
  void serve(const ServedAccess& served) { served_ = served; }

  // Would such a read or write be allowed, or, with `element`, such an atomic operation on elements
  // of so many bytes? Nothing is touched. The region of an allowed access stays pinned until
  // release() or the next access: a write() of bytes of the range needs no second check.
  Accessed check(Access need, const RemoteRange& range, std::size_t element = 0);
  // Copies all bytes of `range`, of bytes.size().
  Accessed write(const RemoteRange& range, std::span<const std::byte> bytes);
  Accessed read(const RemoteRange& range, std::span<std::byte> bytes);
  // Carries out a meaningful operation on whole elements, at most kMaxAtomicBytes within one page
  // of memory or across two. `operands`: the operand, then what to compare with, as far as the
  // action has them. `fetched`, of range.length bytes or null, takes the former values. EBUSY
  // after the brief patience, for several segments at once: nothing was changed. ETIMEDOUT after
  // the usual one: elements of earlier segments may have been changed.
  Accessed change(const AtomicAction& action, const RemoteRange& range, const std::byte* operands,
                  std::byte* fetched, LockWait wait);
  // The range that the last access was refused for, with what is known of its region.
  RefusedAccess refused(AccessError refusal, const RemoteRange& range) const;
  // Unpins what check() has pinned: before the owner waits for something. Idempotent.
  void release();

  // The regions of the last access that was done whose owner is to be told of it (AccessGuard).
  std::span<const RegionKey> keys_to_report() const;

 private:
  Accessed pin(Access served, Access need, const RemoteRange& range, std::size_t element = 1);
  bool is_pinned(const RemoteRange& part) const;
  int change_places(const AtomicAction& action, const std::byte* operands, std::byte* fetched,
                    LockWait wait);
  bool attach();

  Access right_for(const AtomicAction& action) const;

  const std::shared_ptr<RegionTableView> table_;
  std::unique_ptr<AccessGuard> own_guard_;  // attached for the first access
  AccessGuard* guard_ = nullptr;            // the same, or one that others use, too
  const DomainId domain_;
  ServedAccess served_;
  const std::uint32_t endpoint_ = 0;       // its number (Through)
  const std::uint32_t authorization_ = 0;  // that of its key
  // What is pinned: the range as the peer names it, and that check() allowed writes.
  RemoteRange pinned_;
  bool writable_ = false;
};

}  // namespace weft::memory
