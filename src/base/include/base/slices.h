// SPDX-License-Identifier: BSD-2-Clause
// How is a scattered buffer walked, cut and copied?
#pragma once

#include <cstring>
#include <span>

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
// how many there are. `out` must have room for pieces.size() entries.
inline std::size_t slice(std::span<const LocalRange> pieces, std::size_t offset, std::size_t length,
                         LocalRange* out) {
  std::size_t count = 0;
  for (const LocalRange& piece : pieces) {
    if (length == 0) break;
    if (offset >= piece.length) {
      offset -= piece.length;
      continue;
    }
    const std::size_t room = piece.length - offset;
    const std::size_t take = room < length ? room : length;
    // A peer's address may be anything: as a number it may wrap around, as a pointer it may not.
    const auto base = reinterpret_cast<std::uintptr_t>(piece.base);
    out[count++] = {reinterpret_cast<void*>(base + offset), take};
    length -= take;
    offset = 0;
  }
  return count;
}

// Copies bytes [offset, offset + length) of `pieces` to `out`; they must all be there.
inline void gather(void* out, std::span<const LocalRange> pieces, std::size_t length,
                   std::size_t offset = 0) {
  auto* to = static_cast<std::byte*>(out);
  for (const LocalRange& piece : pieces) {
    if (length == 0) return;
    if (offset >= piece.length) {
      offset -= piece.length;
      continue;
    }
    const std::size_t room = piece.length - offset;
    const std::size_t take = room < length ? room : length;
    std::memcpy(to, static_cast<const std::byte*>(piece.base) + offset, take);
    to += take;
    length -= take;
    offset = 0;
  }
}

// Copies up to `length` bytes from `in` into `pieces`, behind the first `offset` bytes of those;
// returns how many fitted.
inline std::size_t scatter(std::span<const LocalRange> pieces, const void* in, std::size_t length,
                           std::size_t offset = 0) {
  const auto* from = static_cast<const std::byte*>(in);
  std::size_t done = 0;
  for (const LocalRange& piece : pieces) {
    if (done == length) return done;
    if (offset >= piece.length) {
      offset -= piece.length;
      continue;
    }
    const std::size_t room = piece.length - offset;
    const std::size_t take = room < length - done ? room : length - done;
    std::memcpy(static_cast<std::byte*>(piece.base) + offset, from + done, take);
    done += take;
    offset = 0;
  }
  return done;
}

}  // namespace weft
