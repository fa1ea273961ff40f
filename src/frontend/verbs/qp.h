// SPDX-License-Identifier: BSD-2-Clause
// How do addresses of verbs become those of queue pairs, and batches get their functions?
#pragma once

#include "memory/local_access.h"
#include "objects.h"

namespace weft::verbs {

// Whether queue pairs of that type have all these operations of ibv_wr_*().
bool has_operations(queue::QpType type, std::uint64_t operations);
// Fills the functions ibv_wr_*() of a queue pair that was created for these operations.
void fill_work_functions(VerbsQp& pair, std::uint64_t operations);

// An lkey of 0 is valid where no byte is copied only.
inline work::Segment segment_of(const ibv_sge& entry) {
  return {reinterpret_cast<void*>(entry.addr), entry.length,
          entry.lkey != 0 ? entry.lkey : memory::kInvalidLocalKey};
}

// The address vector of an attribute. Errors: EINVAL for one without a global header, for a source
// index or a destination that this device has not.
Result<queue::QpAddress> address_of(ibv_context* context, const ibv_ah_attr& attribute);
void write_address(const queue::QpAddress& address, ibv_ah_attr& attribute);

}  // namespace weft::verbs
