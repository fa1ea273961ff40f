// SPDX-License-Identifier: BSD-2-Clause
// How are a few bytes copied faster than a call of memcpy?
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weft {

// From here on a call of memcpy is not slower.
inline constexpr std::size_t kMostSmallCopy = 128;

// Copies `length` bytes, at most kMostSmallCopy, that do not overlap. Two fixed-size moves that may
// overlap each other cover every length between their sizes, so there is no loop and no call.
inline void copy_small(void* to, const void* from, std::size_t length) {
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  struct Block16 {
    std::uint64_t words[2];
  };
  const auto move = [&]<class Word>(std::size_t at, Word word) {
    std::memcpy(&word, in + at, sizeof word);
    std::memcpy(out + at, &word, sizeof word);
  };
  if (length >= 16) {
    for (std::size_t at = 0; at + 16 < length; at += 16) move(at, Block16{});
    move(length - 16, Block16{});
  } else if (length >= 8) {
    move(0, std::uint64_t{});
    move(length - 8, std::uint64_t{});
  } else if (length >= 4) {
    move(0, std::uint32_t{});
    move(length - 4, std::uint32_t{});
  } else if (length != 0) {
    move(0, std::uint8_t{});
    move(length / 2, std::uint8_t{});
    move(length - 1, std::uint8_t{});
  }
}

}  // namespace weft
