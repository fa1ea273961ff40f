// SPDX-License-Identifier: BSD-2-Clause
// Which parts of a slot have memory, and when do they get it?
#include "link_shm/slot_memory.h"

namespace weft::shm {

namespace {

std::uint64_t bytes_of_block(const Geometry& geometry) {
  return geometry.rendezvous_block() * sizeof(Rendezvous);
}

// Backs and maps a part of a slot.
Status back_part(os::SharedFile& file, const SlotPlace& slot, std::uint64_t at,
                 std::uint64_t length) {
  const std::uint64_t offset = slot_at(slot.number) + at;
  if (Status ok = file.reserve(offset, length); !ok) return ok;
  return file.map_into(slot.memory, at, offset, length);
}

}  // namespace

Status back_header(os::SharedFile& file, const SlotPlace& slot) {
  return back_part(file, slot, 0, kCellsAt);
}

Status back_basics(os::SharedFile& file, const SlotPlace& slot, const Geometry& geometry) {
  const std::uint64_t end = geometry.rendezvous_records_at() + bytes_of_block(geometry);
  return back_part(file, slot, kCellsAt, end - kCellsAt);
}

Status back_rendezvous_block(os::SharedFile& file, const SlotPlace& slot, const Geometry& geometry,
                             std::uint32_t rendezvous_id) {
  const std::uint64_t bytes = bytes_of_block(geometry);
  const std::uint64_t block = rendezvous_id / geometry.rendezvous_block();
  return back_part(file, slot, geometry.rendezvous_records_at() + block * bytes, bytes);
}

Status back_bulk(os::SharedFile& file, const SlotPlace& slot, const Geometry& geometry) {
  return back_part(file, slot, geometry.bulk_at(), geometry.bulk_bytes);
}

void release_slot(os::SharedFile& file, std::uint32_t slot) {
  file.release(slot_at(slot) + kCellsAt, kSlotBytes - kCellsAt);
}

}  // namespace weft::shm
