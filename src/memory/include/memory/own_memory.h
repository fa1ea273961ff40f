// SPDX-License-Identifier: BSD-2-Clause
// How does a process access its own registered memory for a peer?
//
// Every access is checked by the process's own region table, once. A region's memory may have gone
// without the region having been closed: that is an error (os/user_memory.h).
#pragma once

#include <memory>
#include <span>

#include "base/atomic_op.h"
#include "base/types.h"
#include "memory/access_guard.h"
#include "memory/served_memory.h"

namespace weft::memory {

// The regions of one domain, through one endpoint. Used by one thread at a time.
class OwnMemory final : public ServedMemory {
 public:
  // `table` is that of this process.
  OwnMemory(std::shared_ptr<RegionTableView> table, DomainId domain,
            const ServedAccess& served = {})
      : table_(std::move(table)), domain_(domain), served_(served) {}

  Accessed check(Access need, const RemoteRange& range, std::size_t element = 0) override;
  Accessed write(const RemoteRange& range, std::span<const std::byte> bytes) override;
  Accessed read(const RemoteRange& range, std::span<std::byte> bytes) override;
  Accessed change(const AtomicAction& action, const RemoteRange& range, const std::byte* operands,
                  std::byte* fetched, Patience patience) override;
  void release() override;
  std::span<const RegionKey> to_tell() const override;

 private:
  Accessed pin(Access served, Access need, const RemoteRange& range, std::size_t element = 1);
  bool is_pinned(const RemoteRange& part) const;
  int change_places(const AtomicAction& action, const std::byte* operands, std::byte* fetched,
                    Patience patience);
  bool attach();

  const std::shared_ptr<RegionTableView> table_;
  const DomainId domain_;
  const ServedAccess served_;
  std::unique_ptr<AccessGuard> guard_;  // attached for the first access
  // What is pinned: the range as the peer names it, and that check() allowed writes.
  RemoteRange pinned_;
  bool writable_ = false;
};

}  // namespace weft::memory
