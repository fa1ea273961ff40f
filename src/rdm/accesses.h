// SPDX-License-Identifier: BSD-2-Clause
// How does a flow access the memory of its peer?
#pragma once

#include "rdm/message.h"
#include "work_queue.h"

namespace weft::rdm {

// Reads, writes and atomic operations at the peer, as link::Flow has them. One thread at a time.
class Accesses {
 public:
  // `queue` outlives it.
  explicit Accesses(WorkQueue& queue) : queue_(queue) {}

  link::Outcome access(const link::AccessRequest& request);
  link::Outcome atomic(const link::AtomicRequest& request);

 private:
  std::uint32_t wire_key(RegionKey key);

  WorkQueue& queue_;
  Aliases aliases_;
};

}  // namespace weft::rdm
