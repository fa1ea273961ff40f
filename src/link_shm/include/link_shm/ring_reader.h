// SPDX-License-Identifier: BSD-2-Clause
// How does the owner of a mailbox read the rings of one sender?
#pragma once

#include <atomic>

#include "link_shm/geometry.h"
#include "link_shm/layout.h"
#include "link_shm/slot_memory.h"

namespace weft::shm {

// The reading end of a slot's two rings. Gives cells and bytes back to the sender a quarter of a
// ring at a time, and when it is told to. The slot stays mapped. One thread.
class RingReader {
 public:
  // The geometry of `slot` was checked; what the header says of it is not looked at.
  explicit RingReader(const SlotMemory& slot)
      : header_(slot.header()), cells_(slot.cells()), slot_(slot), geometry_(slot.geometry()) {}

  // Position of the cell to come.
  std::uint64_t position() const { return next_.count(); }
  const Cell& cell() const { return cells_[next_.index()]; }
  // The first word of that cell as it is now; it is written if is_next() says so.
  std::uint64_t word() const { return cell().word.load(std::memory_order_acquire); }
  bool is_next(std::uint64_t word) const { return static_cast<std::uint32_t>(word) == next_.lap(); }
  bool has_message() const {
    const std::uint64_t found = word();
    // The second line is on its way while the first one is looked at.
    if (fills_cells_) __builtin_prefetch(reinterpret_cast<const std::byte*>(&cell()) + kCacheLine);
    return is_next(found);
  }
  // The message in the present cell has such a payload: has_message() expects the next one to be
  // like it.
  void note_inline(std::size_t length) {
    fills_cells_ = length > kCacheLine - offsetof(Cell, bytes);
  }
  // A payload in the bulk ring, which is backed and goes back to the sender with this cell; null
  // when it cannot be there.
  const std::byte* bulk_payload(const BulkPayload& payload);
  // Goes on to the next cell.
  void advance() {
    next_.advance();
    if (position() - published_ >= geometry_.cells / 4 ||
        bulk_end_ - bulk_published_ >= geometry_.bulk_bytes / 4) {
      give_back();
    }
  }
  void give_back();

 private:
  SlotHeader& header_;
  const Cell* const cells_;
  const SlotMemory& slot_;
  const Geometry geometry_;
  RingPosition next_{geometry_};
  std::uint64_t published_ = 0;  // positions given back to the sender
  std::uint64_t bulk_end_ = 0;   // the same two for the bulk ring
  std::uint64_t bulk_published_ = 0;
  bool fills_cells_ = false;  // the last message had a part in its cell's second line
};

}  // namespace weft::shm
