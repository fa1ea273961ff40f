// SPDX-License-Identifier: BSD-2-Clause
// How does a sender write cells and payloads into the rings of its slot?
#pragma once

#include <atomic>

#include "link/flow.h"
#include "link_shm/geometry.h"
#include "link_shm/layout.h"
#include "link_shm/peer_slot.h"

namespace weft::shm {

// The writing end of a slot's two rings. The caller makes sure of room, fills in next_cell() as far
// as its kind demands, and publishes it. The slot outlives the writer. One thread.
class RingWriter {
 public:
  explicit RingWriter(PeerSlot& slot);

  // True without a look at what the owner has consumed since the last look.
  bool has_room() const { return next_.count() < limit_; }
  // True when so many cells can be written.
  bool room_for(std::uint64_t count);
  // The owner has read all cells, and has said so.
  bool consumed() const {
    return header_.cells_consumed.load(std::memory_order_acquire) == position();
  }
  // Position of the cell to write.
  std::uint64_t position() const { return next_.count(); }
  Cell& next_cell() { return cells_[next_.index()]; }
  Cell& cell_at(std::uint64_t position) { return cells_[next_.index_of(position)]; }
  // Makes the next cell visible. Of `request` it writes operation, tag and data.
  void publish(const link::SendRequest& request, CellKind kind, bool wants_ack = false,
               std::size_t inline_length = 0) {
    Cell& cell = next_cell();
    cell.tag = request.tag;
    cell.data = request.data;
    const auto flags =
        static_cast<std::uint8_t>((request.has_data ? kHasData : 0) | (wants_ack ? kWantsAck : 0));
    const CellWord word{next_.lap(), request.operation, kind, flags,
                        static_cast<std::uint8_t>(inline_length)};
    cell.word.store(word.pack(), std::memory_order_release);
    next_.advance();
    attract_attention();
  }

  // Where the next `length` bytes of the bulk ring, which is backed, are in one piece; null without
  // room.
  std::byte* bulk_room(std::uint64_t length);
  // Takes that room for a payload of `length` bytes and says where it is.
  BulkPayload take_bulk(std::uint64_t length, std::uint32_t rendezvous_id);

  // True when the owner was found to take nothing more: it has closed its mailbox, or has ended.
  bool gone() const { return gone_; }
  void set_gone() { gone_ = true; }

 private:
  void attract_attention() {
    // See fall_asleep(): the owner runs a barrier here when it asks for attention, if it can.
    if (must_fence_) {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    const Attention wanted = header_.attention.load(std::memory_order_relaxed);
    if (wanted != Attention::kPolled) [[unlikely]]
      answer(wanted);
  }
  void answer(Attention wanted);

  PeerSlot& slot_;
  SlotHeader& header_;
  Cell* const cells_;
  const bool must_fence_;
  bool gone_ = false;
  const Geometry geometry_;
  RingPosition next_{geometry_};           // of the cell to write
  std::uint64_t limit_ = geometry_.cells;  // the first position that may not be written yet
  std::uint64_t bulk_next_ = 0;
  std::uint64_t bulk_limit_ = geometry_.bulk_bytes;
};

}  // namespace weft::shm
