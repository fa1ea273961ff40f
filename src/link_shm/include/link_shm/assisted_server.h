// SPDX-License-Identifier: BSD-2-Clause
// How does an owner that polls carry out small accesses to its memory for its senders?
//
// The sender could do it alone, by a system call that reaches into this process, and does when the
// owner does not answer. Here the same access is checked by the same table (memory/own_memory.h).
#pragma once

#include <memory>

#include "link/inbox.h"
#include "link_shm/layout.h"
#include "link_shm/source_table.h"
#include "memory/own_memory.h"

namespace weft::shm {

// One thread.
class AssistedServer {
 public:
  // `regions` is the table of this process; without it every access is refused.
  AssistedServer(std::shared_ptr<memory::RegionTableView> regions, DomainId domain,
                 const ServedAccess& served, std::uint32_t endpoint, std::uint32_t authorization)
      : own_memory_(std::move(regions), domain, served, endpoint, authorization) {}

  // Carries out, or refuses, what the present cell of a source asks for, and answers it. The sink
  // is told of accesses that the region's owner wants to be told of. False when the sender wrote
  // nonsense.
  bool run(Source& source, const CellWord& word, link::InboxSink& sink);
  // The sender says that it has refused itself an access. The sink is told if it is refused here,
  // too.
  void note_refusal(const Source& source, const Cell& cell, link::InboxSink& sink);

 private:
  bool carry_out(const Source& source, const Cell& cell, bool write, link::InboxSink& sink);
  bool carry_out_atomic(const Source& source, const Cell& cell, link::InboxSink& sink);
  void report(const Source& source, Access access, link::InboxSink& sink) const;

  memory::OwnMemory own_memory_;
};

}  // namespace weft::shm
