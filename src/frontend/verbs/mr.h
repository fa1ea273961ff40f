// SPDX-License-Identifier: BSD-2-Clause
// How is a memory region registered, by whichever verb?
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "objects.h"

namespace weft::verbs {

// Memory that is to become a region.
struct RegionRequest {
  void* address = nullptr;
  std::size_t length = 0;
  std::uint64_t start = 0;  // the address that names the first byte (iova)
  unsigned access = 0;      // enum ibv_access_flags
};

// The errno value of rights that may not be given together: 0 or EINVAL (ibv_reg_mr(3)).
int check_rights(unsigned access);

// Whether a region with these rights needs writable memory.
bool writes(unsigned access);

// A region of a protection domain that is not registered. Errors: EINVAL without a domain, ENOENT
// when the program has overwritten its handle.
Result<std::unique_ptr<VerbsMr>> make_region(ibv_pd* pd);

// Has a region tell the program, and itself, which memory it is of.
void show(VerbsMr& region, const RegionRequest& request);

// Registers memory as that region; the rights are as check_rights() wants them. Errors: EFAULT
// where memory that is not on demand is not mapped; those of RegionTable::add().
Status register_region(VerbsMr& region, const RegionRequest& request);

}  // namespace weft::verbs
