// SPDX-License-Identifier: BSD-2-Clause
// How large are the rings of a slot, and where does each part of a slot lie?
//
//   0               SlotHeader, which holds the Geometry
//   kCellsAt        Cell, `cells` times
//   rendezvous_records_at()  Rendezvous, `rendezvous_records` times
//   bulk_at()       the bulk ring
//
// What each sender uses lies at the beginning, so that one system call backs it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/types.h"

namespace weft::shm {

inline constexpr std::uint64_t kSlotPage = 4096;  // parts begin at its multiples
inline constexpr std::uint64_t kCellsAt = kSlotPage;
inline constexpr std::uint64_t kRendezvousBytes = 5 * kCacheLine;
inline constexpr std::uint64_t kCellBytes = 2 * kCacheLine;
inline constexpr std::uint32_t kRendezvousBlock = 16;  // that get memory together

// Powers of two, chosen by the sender of a slot. The owner reads them once (check_geometry()) and
// works with its private copy.
struct Geometry {
  std::uint32_t cells;               // at least 4
  std::uint32_t rendezvous_records;  // large messages of the sender under way
  std::uint32_t bulk_bytes;          // at least 4096

  constexpr std::uint64_t rendezvous_records_at() const {
    return align_up(kCellsAt + cells * kCellBytes, kSlotPage);
  }
  constexpr std::uint64_t bulk_at() const {
    return align_up(rendezvous_records_at() + rendezvous_records * kRendezvousBytes, kSlotPage);
  }
  // Of the whole slot.
  constexpr std::uint64_t bytes() const { return bulk_at() + bulk_bytes; }
  // The longest payload in the bulk ring.
  constexpr std::uint32_t max_eager() const { return bulk_bytes / 8; }
  // Rendezvous that get memory together.
  constexpr std::uint32_t rendezvous_block() const {
    return std::min(kRendezvousBlock, rendezvous_records);
  }

  bool operator==(const Geometry&) const = default;
};

// The slot of a sender of messages, and the largest that there may be.
inline constexpr Geometry kMessageGeometry{512, 4096, 256 * 1024};
// The slot of a connected endpoint. A process has thousands, most of them idle: without the bulk
// ring, which gets memory with its first payload, 28 KiB of the file.
inline constexpr Geometry kConnectionGeometry{128, 4096, 64 * 1024};
inline constexpr std::uint64_t kSlotBytes = kMessageGeometry.bytes();
inline constexpr std::uint32_t kMaxEager = kMessageGeometry.max_eager();
inline constexpr std::uint32_t kMaxRendezvous = 4096;
static_assert(kSlotBytes % kSlotPage == 0);

// A private copy of a geometry that a peer can change at any time; nothing when no slot can be so.
std::optional<Geometry> check_geometry(const Geometry& shared);

// Where a side of a ring of cells is.
class RingPosition {
 public:
  explicit RingPosition(const Geometry& geometry) : mask_(geometry.cells - 1) {}

  // Cells before this one since the ring began.
  std::uint64_t count() const { return count_; }
  // The place in the ring of this cell, or of another one.
  std::size_t index() const { return count_ & mask_; }
  std::size_t index_of(std::uint64_t count) const { return count & mask_; }
  // What this cell carries once it is written: another number than the cell that it replaces, and
  // not the 0 of a ring that has just begun.
  std::uint32_t lap() const { return lap_; }
  void advance() {
    if ((++count_ & mask_) == 0) ++lap_;
  }

 private:
  std::uint64_t count_ = 0;
  std::uint64_t mask_;
  std::uint32_t lap_ = 1;
};

}  // namespace weft::shm
