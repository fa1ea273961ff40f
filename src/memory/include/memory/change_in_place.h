// SPDX-License-Identifier: BSD-2-Clause
// How does a process carry out an atomic operation on its own memory, which may have gone?
#pragma once

#include <cstddef>

#include "base/atomic_op.h"
#include "base/types.h"

namespace weft::memory {

// Changes `here`, whose stripes the caller holds: a meaningful action on at most kMaxAtomicBytes of
// whole elements. `operands`: the operand, then what to compare with, as far as the action has
// them. `fetched`, of here.length bytes or null, takes what was there. False, and nothing is
// changed, when neither the processor nor the kernel says at once that the memory is there and may
// be written; it may be all the same.
bool change_in_place(const AtomicAction& action, const LocalRange& here, const std::byte* operands,
                     std::byte* fetched);

}  // namespace weft::memory
