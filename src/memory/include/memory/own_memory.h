// SPDX-License-Identifier: BSD-2-Clause
// How does a process access its own registered memory for a peer, without being ended by what its
// program does to that memory meanwhile?
//
// Every access is checked by the process's own region table. A region's memory may have gone
// without the region having been closed: the processor undoes what touches that
// (os/all_or_nothing.h); where it cannot, the kernel copies the bytes, or is asked first. Of an
// access that comes in many parts it is asked once for many of them: until forget(), that memory is
// taken to be there. A program whose threads unmap registered memory while peers access it may be
// ended by a signal then.
#pragma once

#include <memory>
#include <span>

#include "base/atomic_op.h"
#include "base/types.h"
#include "memory/access_guard.h"
#include "os/process_memory.h"

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
  // `table` is that of this process.
  OwnMemory(std::shared_ptr<RegionTableView> table, DomainId domain,
            const ServedAccess& served = {})
      : table_(std::move(table)), domain_(domain), served_(served) {}

  // Would such a read or write be allowed, or, with `atomic`, such an atomic operation? Nothing is
  // touched.
  Accessed may(Access need, const RemoteRange& range, bool atomic = false);
  // Copies all bytes of `range`, of bytes.size(). So many bytes behind it are going to be accessed
  // in the same way: `ahead`.
  Accessed write(const RemoteRange& range, std::span<const std::byte> bytes,
                 std::uint64_t ahead = 0);
  Accessed read(const RemoteRange& range, std::span<std::byte> bytes, std::uint64_t ahead = 0);
  // The program may have done something to its memory since. About so many bytes will be accessed
  // until it is called again: the kernel takes its time for each page that it is asked about.
  void forget(std::uint64_t coming) {
    there_ = {};
    at_once_ = coming;
  }
  // Carries out a meaningful operation on whole elements, at most kMaxAtomicBytes within one page
  // of memory or across two. `operands`: the operand, then what to compare with, as far as the
  // action has them. `fetched`, of range.length bytes or null, takes what was there. EBUSY after
  // `patience`.
  Accessed change(const AtomicAction& action, const RemoteRange& range, const std::byte* operands,
                  std::byte* fetched, Patience patience);

  // The regions of the last access that was done whose owner is to be told of it (AccessGuard).
  std::span<const RegionKey> to_tell() const;

 private:
  // Memory that was there when the kernel was asked.
  struct There {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    os::CopyDirection direction = os::CopyDirection::kFromProcess;
  };

  int copy(os::CopyDirection direction, void* mine, const LocalRange& here, std::uint64_t ahead);
  bool is_there(os::CopyDirection direction, const LocalRange& here, std::uint64_t ahead);
  // The range in this process, held until let_go().
  Accessed check_and_pin(Access served, Access need, const RemoteRange& range, LocalRange& here);
  bool attach();

  const std::shared_ptr<RegionTableView> table_;
  const DomainId domain_;
  const ServedAccess served_;
  std::unique_ptr<AccessGuard> user_;  // attached for the first access
  There there_;
  std::uint64_t at_once_ = 0;  // bytes ahead that the kernel is asked about
};

}  // namespace weft::memory
