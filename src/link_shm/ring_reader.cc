// SPDX-License-Identifier: BSD-2-Clause
// How does the owner of a mailbox read the rings of one sender?
#include "link_shm/ring_reader.h"

namespace weft::shm {

const std::byte* RingReader::bulk_payload(const BulkPayload& payload) {
  if (payload.length > geometry_.max_eager() ||
      payload.offset > geometry_.bulk_bytes - payload.length)
    return nullptr;
  bulk_end_ = payload.end;
  return slot_.bulk() + payload.offset;
}

void RingReader::give_back() {
  published_ = position();
  bulk_published_ = bulk_end_;
  header_.bulk_consumed.store(bulk_end_, std::memory_order_release);
  header_.cells_consumed.store(published_, std::memory_order_release);
}

}  // namespace weft::shm
