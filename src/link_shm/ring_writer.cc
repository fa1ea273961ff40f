// SPDX-License-Identifier: BSD-2-Clause
// How does a sender write cells and payloads into the rings of its slot?
#include "link_shm/ring_writer.h"

#include "os/barrier.h"

namespace weft::shm {

RingWriter::RingWriter(PeerSlot& slot)
    : slot_(slot),
      header_(slot.header()),
      cells_(slot.memory().cells()),
      must_fence_(!os::heeds_remote_barriers() || slot.mailbox().owner_raises_barriers == 0),
      geometry_(slot.geometry()) {}

bool RingWriter::room_for(std::uint64_t count) {
  if (position() + count <= limit_) [[likely]]
    return true;
  const std::uint64_t consumed = header_.cells_consumed.load(std::memory_order_acquire);
  // The owner's word counts only as far as it can be true.
  if (consumed > position()) return false;
  limit_ = consumed + geometry_.cells;
  return position() + count <= limit_;
}

std::byte* RingWriter::bulk_room(std::uint64_t length) {
  const std::uint64_t room = align_up(length, kCacheLine);
  const std::uint64_t size = geometry_.bulk_bytes;
  const std::uint64_t offset = bulk_next_ & (size - 1);
  const std::uint64_t skip = offset + room > size ? size - offset : 0;
  if (bulk_next_ + skip + room > bulk_limit_) {
    const std::uint64_t consumed = header_.bulk_consumed.load(std::memory_order_acquire);
    if (consumed > bulk_next_) return nullptr;
    bulk_limit_ = consumed + size;
    if (bulk_next_ + skip + room > bulk_limit_) return nullptr;
  }
  bulk_next_ += skip;
  return slot_.memory().bulk() + (bulk_next_ & (size - 1));
}

BulkPayload RingWriter::take_bulk(std::uint64_t length, std::uint32_t rendezvous_id) {
  const auto offset = static_cast<std::uint32_t>(bulk_next_ & (geometry_.bulk_bytes - 1));
  bulk_next_ += align_up(length, kCacheLine);
  return {bulk_next_, offset, static_cast<std::uint32_t>(length), rendezvous_id, 0};
}

void RingWriter::answer(Attention wanted) {
  if (wanted == Attention::kGone) {
    gone_ = true;
  } else {
    slot_.ring();
  }
}

}  // namespace weft::shm
