// SPDX-License-Identifier: BSD-2-Clause
// What a completion queue tells.
#pragma once

#include <rdma/fi_eq.h>

#include <span>

#include "completions.h"

namespace weft::bench {

// Reads what is in QUEUE, as much as ENTRIES hold, and returns the part of them that it filled.
// Fatal: errors of any kind, and the end of a child with an error where nothing was read.
std::span<fi_cq_tagged_entry> read_queue(fid_cq* queue, std::span<fi_cq_tagged_entry> entries);

// Fatal if QUEUE holds a completion with error.
void check_queue(fid_cq* queue);

// Counts what one queue tells.
class QueueCompletions final : public Completions {
 public:
  explicit QueueCompletions(fid_cq* queue) : queue_(queue) {}
  using Completions::poll;
  void poll(Interest interest) override;

 private:
  fid_cq* queue_;
};

}  // namespace weft::bench
