// SPDX-License-Identifier: BSD-2-Clause
// Which parts of a slot have memory, and when do they get it?
#include "link_shm/slot_memory.h"

#include <utility>

namespace weft::shm {

Result<SlotMemory> SlotMemory::map(os::SharedFile& file, std::uint32_t slot,
                                   const Geometry& geometry) {
  SlotMemory memory(file, slot, geometry);
  const std::uint64_t length = geometry.rendezvous_records_at() + memory.block_bytes();
  if (Status ok = file.reserve(memory.at_, length); !ok) return ok.error();
  auto basics = file.map(memory.at_, length);
  if (!basics) return basics.error();
  memory.basics_ = std::move(basics).value();
  memory.records_ = memory.basics_.at<Rendezvous>(geometry.rendezvous_records_at());
  return memory;
}

// The first block is mapped twice from then on.
Status SlotMemory::reserve_blocks() {
  auto blocks = os::Mapping::reserve(geometry_.bulk_at() - geometry_.rendezvous_records_at());
  if (!blocks) return blocks.error();
  if (Status ok = file_->map_into(blocks.value(), 0, records_at(), block_bytes()); !ok) return ok;
  blocks_ = std::move(blocks).value();
  records_ = blocks_.at<Rendezvous>(0);
  return {};
}

Status SlotMemory::back_rendezvous_block(std::uint32_t rendezvous_id) {
  const std::uint64_t block = rendezvous_id / geometry_.rendezvous_block();
  if (block == 0) return {};
  const std::uint64_t at = block * block_bytes();
  if (Status ok = file_->reserve(records_at() + at, block_bytes()); !ok) return ok;
  if (blocks_.base() == nullptr) {
    if (Status ok = reserve_blocks(); !ok) return ok;
  }
  return file_->map_into(blocks_, at, records_at() + at, block_bytes());
}

Status SlotMemory::back_bulk() {
  if (bulk_.base() != nullptr) return {};
  const std::uint64_t at = at_ + geometry_.bulk_at();
  if (Status ok = file_->reserve(at, geometry_.bulk_bytes); !ok) return ok;
  auto bulk = file_->map(at, geometry_.bulk_bytes);
  if (!bulk) return bulk.error();
  bulk_ = std::move(bulk).value();
  return {};
}

void release_slot(os::SharedFile& file, std::uint32_t slot) {
  file.release(slot_at(slot) + kCellsAt, kSlotBytes - kCellsAt);
}

}  // namespace weft::shm
