// SPDX-License-Identifier: BSD-2-Clause
// How is a scattered buffer walked and cut?
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "base/types.h"

namespace weft {

// Sum of the lengths, saturating at the largest size.
inline std::size_t total_length(std::span<const LocalRange> pieces) {
  std::size_t sum = 0;
  for (const LocalRange& piece : pieces) {
    if (__builtin_add_overflow(sum, piece.length, &sum)) return SIZE_MAX;
  }
  return sum;
}

// Writes into `out` the pieces that make up bytes [offset, offset + length) of `pieces` and returns
// how many there are. `out` must have room for pieces.size() entries. A piece is a LocalRange, or
// has more members behind `base` and `length`, which are copied.
template <class Piece>
std::size_t slice(std::type_identity_t<std::span<const Piece>> pieces, std::size_t offset,
                  std::size_t length, Piece* out) {
  std::size_t count = 0;
  for (const Piece& piece : pieces) {
    if (length == 0) break;
    if (offset >= piece.length) {
      offset -= piece.length;
      continue;
    }
    const std::size_t room = piece.length - offset;
    const std::size_t take = room < length ? room : length;
    // A peer's address may be anything: as a number it may wrap around, as a pointer it may not.
    const auto base = reinterpret_cast<std::uintptr_t>(piece.base);
    out[count] = piece;
    out[count].base = reinterpret_cast<void*>(base + offset);
    out[count++].length = take;
    length -= take;
    offset = 0;
  }
  return count;
}

}  // namespace weft
