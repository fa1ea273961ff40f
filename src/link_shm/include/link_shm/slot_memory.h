// SPDX-License-Identifier: BSD-2-Clause
// Which parts of a slot have memory, and when do they get it?
//
// A slot's place in the file is large, but most senders use little of it: header, cells and the
// first block of rendezvous are backed and mapped when a sender takes the slot, the rest when it is
// first needed. Both sides back what they are going to touch; doing it twice costs a system call
// and nothing else. The rest is not mapped either: a program that locks its memory (mlockall(2))
// would back it.
#pragma once

#include "base/result.h"
#include "link_shm/layout.h"
#include "os/mapping.h"
#include "os/shared_file.h"

namespace weft::shm {

// The parts of a slot that one side has backed and mapped, or nothing. The file outlives it. One
// thread.
class SlotMemory {
 public:
  SlotMemory() = default;
  // Backs and maps what each sender uses of a slot, whose geometry is valid. Errors: ENOSPC, EFBIG,
  // those of mmap(2).
  static Result<SlotMemory> map(os::SharedFile& file, std::uint32_t slot, const Geometry& geometry);

  bool is_mapped() const { return basics_.base() != nullptr; }
  const Geometry& geometry() const { return geometry_; }
  SlotHeader& header() const { return *basics_.at<SlotHeader>(0); }
  Cell* cells() const { return basics_.at<Cell>(kCellsAt); }
  // Those in blocks that are backed. The second block moves them; the former place stays valid.
  Rendezvous* rendezvous_records() const { return records_; }
  // Null before back_bulk().
  std::byte* bulk() const { return bulk_.base(); }

  // Backs and maps the block of rendezvous that `rendezvous_id` lies in. Errors: as map().
  Status back_rendezvous_block(std::uint32_t rendezvous_id);
  // Backs and maps the bulk ring, once. Errors: as map().
  Status back_bulk();

 private:
  SlotMemory(os::SharedFile& file, std::uint32_t slot, const Geometry& geometry)
      : file_(&file), at_(slot_at(slot)), geometry_(geometry) {}
  std::uint64_t block_bytes() const { return geometry_.rendezvous_block() * sizeof(Rendezvous); }
  std::uint64_t records_at() const { return at_ + geometry_.rendezvous_records_at(); }
  Status reserve_blocks();

  os::SharedFile* file_ = nullptr;
  std::uint64_t at_ = 0;  // of the slot in the file
  Geometry geometry_{};
  os::Mapping basics_;  // header, cells and the first block of rendezvous
  os::Mapping blocks_;  // all of rendezvous, once more than the first is in use
  os::Mapping bulk_;
  Rendezvous* records_ = nullptr;
};

// Gives everything but the header of a slot back; it reads as zero afterwards.
void release_slot(os::SharedFile& file, std::uint32_t slot);

}  // namespace weft::shm
