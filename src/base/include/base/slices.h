// SPDX-License-Identifier: BSD-2-Clause
// How is a scattered buffer walked and cut?
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "base/types.h"

namespace weft {

// Sum of the lengths, saturating at the largest size.
inline std::size_t total_length(std::span<const LocalRange> sges) {
  std::size_t sum = 0;
  for (const LocalRange& sge : sges) {
    if (__builtin_add_overflow(sum, sge.length, &sum)) return SIZE_MAX;
  }
  return sum;
}

// Writes into `out` the SGEs that make up bytes [offset, offset + length) of `sges` and returns
// how many there are. `out` must have room for sges.size() entries. An SGE is a LocalRange, or
// has more members behind `base` and `length`, which are copied.
template <class Sge>
std::size_t slice(std::type_identity_t<std::span<const Sge>> sges, std::size_t offset,
                  std::size_t length, Sge* out) {
  std::size_t count = 0;
  for (const Sge& sge : sges) {
    if (length == 0) break;
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const std::size_t room = sge.length - offset;
    const std::size_t take = room < length ? room : length;
    // A peer's address may be anything: as a number it may wrap around, as a pointer it may not.
    const auto base = reinterpret_cast<std::uintptr_t>(sge.base);
    out[count] = sge;
    out[count].base = reinterpret_cast<void*>(base + offset);
    out[count++].length = take;
    length -= take;
    offset = 0;
  }
  return count;
}

}  // namespace weft
