// SPDX-License-Identifier: BSD-2-Clause
// How is the memory laid out that a peer may reach, and how is damage to it noticed?
#pragma once

#include <cstddef>

#include "payload.h"

namespace weft::faults {

inline constexpr std::size_t kGuardBytes = 4096;
inline constexpr std::size_t kScratchBytes = 512 * 1024;
inline constexpr std::size_t kCellBytes = 256;
inline constexpr std::size_t kCells = 2048;
inline constexpr std::size_t kReadableBytes = 512 * 1024;

// Where each part begins. Peers write to the scratch and to cells (one whole payload each, once);
// they read the readable part; no process ever writes to the rest.
inline constexpr std::size_t kScratchAt = kGuardBytes;
inline constexpr std::size_t kCellsAt = kScratchAt + kScratchBytes;
inline constexpr std::size_t kReadableAt = kCellsAt + kCells * kCellBytes;
inline constexpr std::size_t kArenaBytes = kReadableAt + kReadableBytes + kGuardBytes;
inline constexpr std::size_t kChurnBytes = 512 * 1024;

inline constexpr std::uint64_t kReadableStream = 0x5ead;
inline constexpr std::uint64_t kGuardStream = 0x9a4d;

// A view of kArenaBytes bytes that another object owns.
class Arena {
 public:
  explicit Arena(Bytes memory) : memory_(memory) {}

  void prepare() {
    fill_pattern(low_guard(), kGuardStream);
    fill_pattern(memory_.subspan(kReadableAt, kReadableBytes), kReadableStream);
    fill_pattern(high_guard(), kGuardStream);
  }
  bool intact() const {
    return is_pattern(low_guard(), kGuardStream) && is_pattern(high_guard(), kGuardStream) &&
           is_pattern(memory_.subspan(kReadableAt, kReadableBytes), kReadableStream);
  }
  ConstBytes cell(std::size_t index) const {
    return memory_.subspan(kCellsAt + index * kCellBytes, kCellBytes);
  }

 private:
  Bytes low_guard() const { return memory_.first(kGuardBytes); }
  Bytes high_guard() const { return memory_.last(kGuardBytes); }

  Bytes memory_;
};

}  // namespace weft::faults
