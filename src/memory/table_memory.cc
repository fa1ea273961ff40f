// SPDX-License-Identifier: BSD-2-Clause
// Which parts of a region table does a process map, and when?
#include "memory/table_memory.h"

#include <algorithm>
#include <utility>

namespace weft::memory {

namespace {

constexpr std::uint64_t kTablePage = 4096;

}  // namespace

TableMemory::TableMemory(os::SharedFilePtr file, os::Mapping memory, os::Mapping own_slots)
    : file_(std::move(file)),
      memory_(std::move(memory)),
      own_slots_(std::move(own_slots)),
      slots_(own_slots_.base() != nullptr ? own_slots_.at<RegionSlot>(0) : shown_slots()),
      known_slots_(own_slots_.base() != nullptr ? private_slots_ : file_slots_) {}

Result<std::shared_ptr<TableMemory>> TableMemory::of_owner(os::SharedFilePtr file) {
  auto own_slots = os::Mapping::reserve(kMaxRegions * sizeof(RegionSlot));
  if (!own_slots) return own_slots.error();
  return of(std::move(file), std::move(own_slots).value());
}

Result<std::shared_ptr<TableMemory>> TableMemory::of_user(os::SharedFilePtr file) {
  return of(std::move(file), {});
}

Result<std::shared_ptr<TableMemory>> TableMemory::of(os::SharedFilePtr file,
                                                     os::Mapping own_slots) {
  auto memory = os::Mapping::reserve(kTableSize);
  if (!memory) return memory.error();
  std::shared_ptr<TableMemory> table(
      new TableMemory(std::move(file), std::move(memory).value(), std::move(own_slots)));
  Status ok = table->map(0, kUsersAt);
  if (ok) ok = table->map_index(IndexWord{});
  if (!ok) return ok.error();
  return table;
}

Status TableMemory::map(std::uint64_t at, std::uint64_t end) const {
  return file_->map_into(memory_, at, at, end - at);
}

// Twofold growth costs little, and at most half of a section is mapped in vain.
Status TableMemory::extend(MappedPart& section, std::uint64_t count) {
  if (count <= section.count.load(std::memory_order_acquire)) return {};
  const std::lock_guard guard(mutex_);
  const std::uint64_t present = section.count.load(std::memory_order_relaxed);
  if (count <= present) return {};
  const std::uint64_t pages = align_up(count, kTablePage / section.entry_bytes);
  const std::uint64_t wanted = std::min(section.most, std::max(pages, 2 * present));
  const std::uint64_t at = section.at + present * section.entry_bytes;
  const std::uint64_t end = section.at + wanted * section.entry_bytes;
  Status ok = &section == &private_slots_ ? own_slots_.fill(at, -1, 0, end - at) : map(at, end);
  if (ok) section.count.store(wanted, std::memory_order_release);
  return ok;
}

Status TableMemory::map_slots(std::uint32_t count) {
  if (Status ok = extend(file_slots_, count); !ok) return ok;
  return &known_slots_ == &private_slots_ ? extend(private_slots_, count) : Status();
}

}  // namespace weft::memory
