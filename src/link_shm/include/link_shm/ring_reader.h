// SPDX-License-Identifier: BSD-2-Clause
// How does the owner of a mailbox read the rings of one sender?
#pragma once

#include <atomic>

#include "link_shm/layout.h"

namespace weft::shm {

// The reading end of a slot's two rings. Gives cells and bytes back to the sender a quarter of a
// ring at a time. The slot stays mapped. One thread.
class RingReader {
 public:
  RingReader(SlotHeader& header, const Cell* cells, const std::byte* bulk)
      : header_(header), cells_(cells), bulk_(bulk) {}

  // Position of the cell to come.
  std::uint64_t position() const { return next_; }
  const Cell& cell() const { return cells_[next_ % kCells]; }
  // The first word of that cell as it is now; it is written if is_next() says so.
  std::uint64_t word() const { return cell().word.load(std::memory_order_acquire); }
  bool is_next(std::uint64_t word) const {
    return static_cast<std::uint32_t>(word) == lap_of(next_);
  }
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
  // A payload in the bulk ring, which goes back to the sender with this cell; null when it cannot
  // be there.
  const std::byte* bulk_payload(const BulkPayload& payload);
  // Goes on to the next cell.
  void advance() {
    ++next_;
    if (next_ - published_ >= kCells / 4 || bulk_end_ - bulk_published_ >= kBulkBytes / 4) {
      give_back();
    }
  }

 private:
  void give_back();

  SlotHeader& header_;
  const Cell* const cells_;
  const std::byte* const bulk_;
  std::uint64_t next_ = 0;
  std::uint64_t published_ = 0;  // positions given back to the sender
  std::uint64_t bulk_end_ = 0;   // the same two for the bulk ring
  std::uint64_t bulk_published_ = 0;
  bool fills_cells_ = false;  // the last message had a part in its cell's second line
};

}  // namespace weft::shm
