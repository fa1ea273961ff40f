// SPDX-License-Identifier: BSD-2-Clause
// Which parts of a region table does a process map, and when?
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/result.h"
#include "memory/table_layout.h"
#include "os/mapping.h"
#include "os/shared_file.h"

namespace weft::memory {

// A region table as one process sees it. The file is large and sparse, and all that is mapped is
// filled where the program locks its memory (mlockall(2)): so each section is mapped as far as it
// is used, and must be before it is touched. Any thread.
class TableMemory {
 public:
  // Maps the header and the first index. Errors: EINVAL when the file is too short for a
  // table, those of mmap(2).
  static Result<std::shared_ptr<TableMemory>> of_owner(os::SharedFilePtr file);
  static Result<std::shared_ptr<TableMemory>> of_user(os::SharedFilePtr file);

  os::SharedFile& file() const { return *file_; }
  TableHeader& header() const { return *memory_.at<TableHeader>(0); }
  UserRecord* users() const { return memory_.at<UserRecord>(kUsersAt); }
  std::atomic<std::uint32_t>* index(IndexWord word) const {
    return memory_.at<std::atomic<std::uint32_t>>(word.at());
  }
  // The slots that users read.
  RegionSlot* shown_slots() const { return memory_.at<RegionSlot>(kSlotsAt); }
  // The slots that this process goes by. The owner has all of them once more: of a region's place
  // and rights it believes no other copy, and it never reads the one in the file back.
  RegionSlot* slots() const { return slots_; }

  // Have the first entries of a section mapped, as many as that. Errors: those of mmap(2).
  Status map_users(std::uint32_t count) { return extend(users_, count); }
  Status map_slots(std::uint32_t count);
  Status map_index(IndexWord word) { return extend(bank_of(word), word.entries()); }
  // False for what may not be read. A user maps what the table names; the owner has what is in use.
  bool has_index(IndexWord word) {
    return word.entries() <= bank_of(word).count.load(std::memory_order_acquire) ||
           map_index(word).ok();
  }
  bool has_slot(std::uint32_t number) {
    if (number < known_slots_.count.load(std::memory_order_acquire)) [[likely]]
      return true;
    return &known_slots_ == &file_slots_ && number < kMaxRegions && map_slots(number + 1).ok();
  }

 private:
  // Entries that are mapped from the first one on.
  struct MappedPart {
    const std::uint64_t at;  // in the file, or in own_slots_
    const std::uint64_t entry_bytes;
    const std::uint64_t most;
    std::atomic<std::uint64_t> count{0};
  };

  TableMemory(os::SharedFilePtr file, os::Mapping memory, os::Mapping own_slots);
  static Result<std::shared_ptr<TableMemory>> of(os::SharedFilePtr file, os::Mapping own_slots);
  MappedPart& bank_of(IndexWord word) {
    return word.generation % 2 == 0 ? even_index_ : odd_index_;
  }
  Status map(std::uint64_t at, std::uint64_t end) const;
  Status extend(MappedPart& section, std::uint64_t count);

  const os::SharedFilePtr file_;
  const os::Mapping memory_;
  const os::Mapping own_slots_;  // of the owner, else nothing
  RegionSlot* const slots_;
  MappedPart users_{kUsersAt, sizeof(UserRecord), kMaxUsers};
  MappedPart even_index_{IndexWord{0}.at(), 4, std::uint64_t{1} << kMaxIndexBits};
  MappedPart odd_index_{IndexWord{1}.at(), 4, std::uint64_t{1} << kMaxIndexBits};
  MappedPart file_slots_{kSlotsAt, sizeof(RegionSlot), kMaxRegions};
  MappedPart private_slots_{0, sizeof(RegionSlot), kMaxRegions};
  MappedPart& known_slots_;
  std::mutex mutex_;  // while a section grows
};

}  // namespace weft::memory
