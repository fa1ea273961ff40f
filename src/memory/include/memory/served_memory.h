// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint execute accesses of its peers?
#pragma once

#include <cstddef>
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

// The memory that peers access through one endpoint. Used by one thread at a time.
class ServedMemory {
 public:
  virtual ~ServedMemory() = default;

  // Would such a read or write be allowed, or, with `element`, such an atomic operation on elements
  // of so many bytes? Nothing is touched. The region of an allowed access stays pinned until
  // release() or the next access: a write() of bytes of the range needs no second check.
  virtual Accessed check(Access need, const RemoteRange& range, std::size_t element = 0) = 0;
  // Copies all bytes of `range`, of bytes.size().
  virtual Accessed write(const RemoteRange& range, std::span<const std::byte> bytes) = 0;
  virtual Accessed read(const RemoteRange& range, std::span<std::byte> bytes) = 0;
  // Carries out a meaningful operation on whole elements, at most kMaxAtomicBytes within one page
  // of memory or across two. `operands`: the operand, then what to compare with, as far as the
  // action has them. `fetched`, of range.length bytes or null, takes the former values. EBUSY
  // after the brief patience, for several segments at once: nothing was changed. ETIMEDOUT after
  // the usual one: elements of earlier segments may have been changed.
  virtual Accessed change(const AtomicAction& action, const RemoteRange& range,
                          const std::byte* operands, std::byte* fetched, Patience patience) = 0;
  // Unpins what check() has pinned: before the owner waits for something. Idempotent.
  virtual void release() = 0;

  // The regions of the last access that was done whose owner is to be told of it (AccessGuard).
  virtual std::span<const RegionKey> to_tell() const = 0;
};

}  // namespace weft::memory
