// SPDX-License-Identifier: BSD-2-Clause
// Which parts of a slot have memory, and when do they get it?
#include "link_shm/slot_memory.h"

#include <algorithm>
#include <cerrno>

namespace weft::shm {

namespace {

// The file grows by so many slots at a time: a thousand senders need few system calls.
constexpr std::uint32_t kSlotsAtOnce = 64;

std::uint64_t bytes_of_block(const Geometry& geometry) {
  return geometry.rendezvous_block() * sizeof(Rendezvous);
}

// The last page of a slot is what makes the file long enough.
Status lengthen_for(os::SharedFile& file, std::uint32_t slot) {
  const std::uint32_t last = std::min(slot | (kSlotsAtOnce - 1), kSlots - 1);
  if (file.reserve(slot_at(last + 1) - kSlotPage, kSlotPage)) return {};
  return file.reserve(slot_at(slot + 1) - kSlotPage, kSlotPage);
}

}  // namespace

Status back_header(os::SharedFile& file, std::uint32_t slot) {
  return file.reserve(slot_at(slot), kCellsAt);
}

Result<os::Mapping> map_slot(os::SharedFile& file, std::uint32_t slot, const Geometry& geometry) {
  auto memory = file.map(slot_at(slot), geometry.bytes());
  if (memory || memory.error().code != EINVAL) return memory;
  if (Status ok = lengthen_for(file, slot); !ok) return ok.error();
  return file.map(slot_at(slot), geometry.bytes());
}

Status back_basics(os::SharedFile& file, std::uint32_t slot, const Geometry& geometry) {
  const std::uint64_t end = geometry.rendezvous_records_at() + bytes_of_block(geometry);
  return file.reserve(slot_at(slot) + kCellsAt, end - kCellsAt);
}

Status back_rendezvous_block(os::SharedFile& file, std::uint32_t slot, const Geometry& geometry,
                             std::uint32_t rendezvous_id) {
  const std::uint64_t bytes = bytes_of_block(geometry);
  const std::uint64_t block = rendezvous_id / geometry.rendezvous_block();
  return file.reserve(slot_at(slot) + geometry.rendezvous_records_at() + block * bytes, bytes);
}

Status back_bulk(os::SharedFile& file, std::uint32_t slot, const Geometry& geometry) {
  return file.reserve(slot_at(slot) + geometry.bulk_at(), geometry.bulk_bytes);
}

void release_slot(os::SharedFile& file, std::uint32_t slot) {
  file.release(slot_at(slot) + kCellsAt, kSlotBytes - kCellsAt);
}

}  // namespace weft::shm
