// SPDX-License-Identifier: BSD-2-Clause
// What does an atomic operation make of the elements that it finds? fi_atomic(3)
#pragma once

#include <cstddef>

#include "base/atomic_op.h"
#include "base/types.h"

namespace weft::memory {

// True when the operation has this form and means something for the type. Bits of floating-point
// numbers have no operations, complex numbers no order. Any number may be in `action`.
bool meaningful(const AtomicAction& action);

// The rights that a region must give for it: what changes needs kRemoteWrite, what brings the
// initial value kRemoteRead.
Access rights_for(const AtomicAction& action);

// Applies a meaningful action to `length` bytes at `target`, which are whole elements. `operand` is
// not looked at by kRead, `compare` only by the comparing form. No pointer need be aligned; they
// must not overlap. Integers wrap around.
void apply(const AtomicAction& action, std::byte* target, const std::byte* operand,
           const std::byte* compare, std::size_t length);

}  // namespace weft::memory
