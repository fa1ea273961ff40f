// SPDX-License-Identifier: BSD-2-Clause
// Which memory did this process register, and when has its last user finished?
#include "memory/region_table.h"

#include <chrono>
#include <thread>

#include "memory/key_sequence.h"
#include "os/barrier.h"
#include "os/runtime_dir.h"

namespace weft::memory {
namespace {

constexpr std::uint32_t kSlotsPerStep = 4096 / sizeof(RegionSlot);

// Does a range pass the end of the address space?
bool ends_beyond(std::uint64_t base, std::uint64_t length) {
  return length != 0 && base + (length - 1) < base;
}

std::string fresh_name() {
  char text[32];
  std::snprintf(text, sizeof text, "table-%016llx",
                static_cast<unsigned long long>(os::random_number()));
  return text;
}

}  // namespace

RegionTable::RegionTable(std::shared_ptr<TableMemory> memory, std::string name)
    : memory_(std::move(memory)), name_(std::move(name)) {}

Result<std::unique_ptr<RegionTable>> RegionTable::create(const std::string& directory) {
  std::string name = fresh_name();
  const bool named = !directory.empty();
  os::SharedFilePtr file = os::SharedFile::create_nameless();
  if (named) {
    auto created = os::SharedFile::create(directory + "/" + name, kTableSize);
    if (!created) return created.error();
    file = std::move(created).value();
  }
  // The first index, which peers touch, is backed from the start; users back their own records.
  if (Status ok = file->reserve(0, kUsersAt); !ok) return ok.error();
  if (Status ok = file->reserve(kIndexAt, 4 * IndexWord{}.entries()); !ok) return ok.error();
  auto memory = TableMemory::of_owner(file);
  if (!memory) return memory.error();
  std::unique_ptr<RegionTable> table(new RegionTable(std::move(memory).value(), std::move(name)));
  table->header().version = kTableVersion;
  table->header().private_shift = static_cast<std::uint32_t>(os::random_number());
  table->stripes_ = std::make_shared<StripeTable>(directory);
  table->header().owner_raises_barriers = os::can_raise_remote_barriers();
  table->header().index_word.store(table->word_.pack(), std::memory_order_relaxed);
  table->header().magic = kTableMagic;
  if (!named) return table;
  if (Status ok = file->publish(); !ok) return ok.error();
  return table;
}

std::shared_ptr<RegionTableView> RegionTable::for_owner() const {
  return std::make_shared<RegionTableView>(memory_, stripes_, devices_);
}

// Shows the slot to peers as it is now: its contents before an even sequence, and after an odd one.
// Segments were shown by store_segment().
void RegionTable::publish(std::uint32_t slot_number) const {
  const RegionSlot& from = slot(slot_number);
  RegionSlot& to = memory_->shown_slots()[slot_number];
  const auto copy = [](auto& target, const auto& source) {
    target.store(source.load(std::memory_order_relaxed), std::memory_order_relaxed);
  };
  const std::uint32_t sequence = from.sequence.load(std::memory_order_relaxed);
  if (sequence % 2 != 0) return to.sequence.store(sequence, std::memory_order_seq_cst);
  copy(to.key, from.key);
  copy(to.domain, from.domain);
  copy(to.shift, from.shift);
  copy(to.length, from.length);
  copy(to.start, from.start);
  copy(to.binding, from.binding);
  // An even sequence may stand there already: what enables a region comes last.
  to.access.store(from.access.load(std::memory_order_relaxed), std::memory_order_release);
  to.sequence.store(sequence, std::memory_order_release);
}

bool RegionTable::key_taken(DomainId domain, RegionKey key) const {
  const std::uint64_t mask = word_.entries() - 1;
  std::uint64_t at = hash_key(domain, key);
  for (std::uint64_t probes = 0; probes <= mask; ++probes, ++at) {
    const std::uint32_t entry = index(word_)[at & mask].load(std::memory_order_relaxed);
    if (entry == 0) return false;
    if (entry > slots_end_) continue;  // a tombstone, or what a peer scribbled
    const RegionSlot& found = slot(entry - 1);
    if (found.key.load(std::memory_order_relaxed) == key.v &&
        found.domain.load(std::memory_order_relaxed) == domain.v) {
      return true;
    }
  }
  return false;
}

// The program may have chosen the same key for another region of this domain.
RegionKey RegionTable::unused_key(DomainId domain) const {
  RegionKey key = next_provider_key();
  while (key_taken(domain, key)) key = next_provider_key();
  return key;
}

Result<std::uint32_t> RegionTable::take_slot() {
  if (!free_slots_.empty()) {
    const std::uint32_t number = free_slots_.back();
    free_slots_.pop_back();
    return number;
  }
  if (slots_end_ == kMaxRegions) {
    return Error{ENOSPC,
                 std::to_string(kMaxRegions) + " regions are registered, the most possible"};
  }
  if (slots_end_ == slots_reserved_) {
    const std::uint64_t at = kSlotsAt + std::uint64_t{slots_reserved_} * sizeof(RegionSlot);
    if (Status ok = file().reserve(at, kSlotsPerStep * sizeof(RegionSlot)); !ok) return ok.error();
    if (Status ok = memory_->map_slots(slots_end_ + 1); !ok) return ok.error();
    const std::uint32_t slots = slots_reserved_ + kSlotsPerStep;
    if (free_slots_.capacity() < slots) free_slots_.reserve(2 * std::size_t{slots});
    slots_reserved_ = slots;
  }
  slot(slots_end_).sequence.store(1, std::memory_order_relaxed);
  publish(slots_end_);
  return slots_end_++;
}

void RegionTable::store_segment(std::uint32_t slot_number, std::uint64_t base, std::uint64_t length,
                                std::uint32_t next, std::uint32_t states) const {
  for (RegionSlot* to : {&slot(slot_number), &memory_->shown_slots()[slot_number]}) {
    to->base.store(base, std::memory_order_relaxed);
    to->segment.store(length, std::memory_order_relaxed);
    to->next.store(next, std::memory_order_relaxed);
    to->access.store(states, std::memory_order_relaxed);
  }
}

// A slot for each segment, of which each names the next. Returns the first one's number.
Result<std::uint32_t> RegionTable::take_slots(const RegionAttributes& attributes) {
  std::uint32_t next = 0;
  for (std::size_t left = attributes.rest.size() + 1; left-- != 0;) {
    const Result<std::uint32_t> number = take_slot();
    if (!number) {
      free_slots(next);
      return number.error();
    }
    const bool first = left == 0;
    const std::uint64_t base =
        first ? attributes.base : reinterpret_cast<std::uint64_t>(attributes.rest[left - 1].base);
    store_segment(number.value(), base,
                  first ? attributes.length : attributes.rest[left - 1].length, next);
    next = number.value() + 1;
  }
  return next - 1;
}

// `first` is a slot number + 1, or 0. take_slot() has made the room.
void RegionTable::free_slots(std::uint32_t first) {
  while (first != 0) {
    free_slots_.push_back(first - 1);
    first = slot(first - 1).next.load(std::memory_order_relaxed);
  }
}

Status RegionTable::make_room_in_index() {
  if (4 * (index_filled_ + 1) <= 3 * word_.entries()) return {};
  // Tombstones may be most of what fills it: then an index of the same size is enough.
  const bool grow = 2 * (live_ + 1) > word_.entries() && word_.bits < kMaxIndexBits;
  return rebuild_index(word_.next(word_.bits + (grow ? 1 : 0)));
}

// Peers may be searching the bank that is overwritten here, but only if they began two indexes ago:
// they miss, see a new word and begin again.
Status RegionTable::rebuild_index(IndexWord next) {
  if (Status ok = file().reserve(next.at(), 4 * next.entries()); !ok) return ok;
  if (Status ok = memory_->map_index(next); !ok) return ok;
  for (std::uint64_t i = 0; i < next.entries(); ++i) {
    index(next)[i].store(0, std::memory_order_relaxed);
  }
  index_filled_ = 0;
  for (std::uint64_t i = 0; i < word_.entries(); ++i) {
    const std::uint32_t entry = index(word_)[i].load(std::memory_order_relaxed);
    if (entry != 0 && entry <= slots_end_) insert_into_index(next, entry - 1);
  }
  word_ = next;
  header().index_word.store(next.pack(), std::memory_order_release);
  return {};
}

void RegionTable::insert_into_index(IndexWord word, std::uint32_t slot_number) {
  const RegionSlot& added = slot(slot_number);
  const std::uint64_t mask = word.entries() - 1;
  const DomainId domain{added.domain.load(std::memory_order_relaxed)};
  const RegionKey key{added.key.load(std::memory_order_relaxed)};
  std::uint64_t at = hash_key(domain, key);
  for (std::uint64_t probes = 0; probes <= mask; ++probes, ++at) {
    auto& entry = index(word)[at & mask];
    const std::uint32_t present = entry.load(std::memory_order_relaxed);
    if (present != 0 && present != kTombstone) continue;
    if (present == 0) ++index_filled_;
    entry.store(slot_number + 1, std::memory_order_release);
    return;
  }
}

void RegionTable::erase_from_index(std::uint32_t slot_number) {
  const RegionSlot& erased = slot(slot_number);
  const std::uint64_t mask = word_.entries() - 1;
  const DomainId domain{erased.domain.load(std::memory_order_relaxed)};
  std::uint64_t at = hash_key(domain, RegionKey{erased.key.load(std::memory_order_relaxed)});
  std::uint64_t probes = 0;
  while (index(word_)[at & mask].load(std::memory_order_relaxed) != slot_number + 1) {
    if (++probes > mask) return;  // a peer scribbled over it
    ++at;
  }
  // The end of a run of entries needs no tombstone, and neither do the tombstones before it.
  if (index(word_)[(at + 1) & mask].load(std::memory_order_relaxed) != 0) {
    index(word_)[at & mask].store(kTombstone, std::memory_order_relaxed);
    return;
  }
  do {
    index(word_)[at-- & mask].store(0, std::memory_order_relaxed);
    if (index_filled_ != 0) --index_filled_;
  } while (index(word_)[at & mask].load(std::memory_order_relaxed) == kTombstone);
}

Result<std::uint64_t> RegionTable::size_of(const RegionAttributes& attributes) {
  std::uint64_t size = attributes.length;
  bool wraps = ends_beyond(attributes.base, size);
  for (const LocalRange& segment : attributes.rest) {
    wraps = wraps || ends_beyond(reinterpret_cast<std::uint64_t>(segment.base), segment.length) ||
            __builtin_add_overflow(size, segment.length, &size);
  }
  if (!wraps && !ends_beyond(attributes.start, size)) return size;
  return Error{EINVAL, "a region may not wrap around the end of the address space"};
}

// Makes a slot, whose segments are stored, that of a live region.
void RegionTable::fill(RegionSlot& fresh, const RegionAttributes& attributes, RegionKey key,
                       std::uint64_t size) const {
  fresh.key.store(key.v, std::memory_order_relaxed);
  fresh.domain.store(attributes.domain.v, std::memory_order_relaxed);
  fresh.shift.store(0, std::memory_order_relaxed);
  fresh.length.store(size, std::memory_order_relaxed);
  fresh.start.store(attributes.start, std::memory_order_relaxed);
  fresh.binding.store(attributes.binding, std::memory_order_relaxed);
  fresh.access.store(static_cast<std::uint32_t>(attributes.access) |
                         (attributes.disabled ? kRegionDisabled : 0) |
                         (attributes.device.copier != nullptr ? kRegionOfDevice : 0) |
                         attributes.authorization << kAuthorizationShift,
                     std::memory_order_relaxed);
  fresh.sequence.store(fresh.sequence.load(std::memory_order_relaxed) + 1,
                       std::memory_order_release);
}

Result<Registration> RegionTable::add(const RegionAttributes& attributes) {
  if (file().inherited()) {
    return Error{EPERM, "a forked child cannot register memory in its parent's domain"};
  }
  if (attributes.rest.size() >= kMaxSegments) {
    return Error{EINVAL, std::to_string(attributes.rest.size() + 1) +
                             " segments: the most of a region is " + std::to_string(kMaxSegments)};
  }
  const auto size = size_of(attributes);
  if (!size) return size.error();
  const std::lock_guard guard(mutex_);
  if (!attributes.choose_key && key_taken(attributes.domain, attributes.key)) {
    return Error{ENOKEY, "key " + std::to_string(attributes.key.v) + " is registered already"};
  }
  if (Status ok = make_room_in_index(); !ok) return ok.error();
  const Result<std::uint32_t> number = take_slots(attributes);
  if (!number) return number.error();
  const RegionKey key = !attributes.choose_key ? attributes.key
                        : attributes.short_key ? short_keys_.take()
                                               : unused_key(attributes.domain);
  if (attributes.device.copier != nullptr) devices_->add(number.value(), attributes.device);
  fill(slot(number.value()), attributes, key, size.value());
  publish(number.value());
  insert_into_index(word_, number.value());
  ++live_;
  return Registration{number.value(), key, attributes.choose_key && attributes.short_key};
}

Status RegionTable::replace(const Registration& registration, const RegionAttributes& attributes,
                            int timeout_ms) {
  if (file().inherited()) return Error{EPERM, "the region is the parent's"};
  const auto size = size_of(attributes);
  if (!size) return size.error();
  if (!attributes.rest.empty()) return Error{EINVAL, "a region of several segments"};
  if (!close(registration.slot) || !wait_until_unused(registration.slot, timeout_ms)) {
    return Error{EBUSY, "a stopped peer is in the middle of a copy to or from the region"};
  }
  const std::lock_guard guard(mutex_);
  if (Status ok = make_room_in_index(); !ok) return ok;
  store_segment(registration.slot, attributes.base, attributes.length, 0);
  fill(slot(registration.slot), attributes, registration.key, size.value());
  publish(registration.slot);
  insert_into_index(word_, registration.slot);
  ++live_;
  return {};
}

void RegionTable::enable(const Registration& registration, std::uint32_t binding) {
  RegionSlot& enabled = slot(registration.slot);
  const std::lock_guard guard(mutex_);
  enabled.binding.store(binding, std::memory_order_relaxed);
  enabled.access.fetch_and(~kRegionDisabled, std::memory_order_relaxed);
  enabled.sequence.fetch_add(2, std::memory_order_seq_cst);
  publish(registration.slot);
}

// Disables a region; false when it was before. By the changed sequence users that are in the middle
// of a check begin again.
bool RegionTable::suspend(std::uint32_t slot_number) {
  RegionSlot& suspended = slot(slot_number);
  const std::lock_guard guard(mutex_);
  const std::uint32_t before =
      suspended.access.fetch_or(kRegionDisabled, std::memory_order_relaxed);
  suspended.sequence.fetch_add(2, std::memory_order_seq_cst);
  publish(slot_number);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return (before & kRegionDisabled) == 0;
}

RegionParts RegionTable::parts_of(const Registration& registration) const {
  RegionParts parts;
  for (std::uint32_t next = registration.slot + 1; next != 0;) {
    const RegionSlot& part = slot(next - 1);
    const std::uint32_t states = part.access.load(std::memory_order_relaxed);
    parts.push_back({part.base.load(std::memory_order_relaxed),
                     part.segment.load(std::memory_order_relaxed),
                     (states & kPartNotRefreshed) != 0});
    next = part.next.load(std::memory_order_relaxed);
  }
  return parts;
}

// The region is disabled, and no user has it pinned.
Status RegionTable::store_parts(std::uint32_t first, const RegionParts& parts) {
  if (parts.size() > kMaxParts) {
    return Error{ENOSPC, std::to_string(parts.size()) +
                             " parts, open or not refreshed: the most of a region is " +
                             std::to_string(kMaxParts)};
  }
  const std::lock_guard guard(mutex_);
  const auto states = [](const RegionPart& part) { return part.closed ? kPartNotRefreshed : 0; };
  std::uint32_t next = 0;
  for (std::size_t left = parts.size(); --left != 0;) {
    const Result<std::uint32_t> number = take_slot();
    if (!number) {
      free_slots(next);
      return number.error();
    }
    const RegionPart& part = parts[left];
    store_segment(number.value(), part.base, part.length, next, states(part));
    next = number.value() + 1;
  }
  const RegionSlot& region = slot(first);
  free_slots(region.next.load(std::memory_order_relaxed));
  const std::uint32_t access = region.access.load(std::memory_order_relaxed) & ~kPartNotRefreshed;
  store_segment(first, parts[0].base, parts[0].length, next, access | states(parts[0]));
  return {};
}

// Other pages may have other numbers (page_numbers.h).
void RegionTable::resume(std::uint32_t slot_number, bool enabled) {
  RegionSlot& resumed = slot(slot_number);
  const std::lock_guard guard(mutex_);
  resumed.shift.store(0, std::memory_order_relaxed);
  if (enabled) resumed.access.fetch_and(~kRegionDisabled, std::memory_order_relaxed);
  resumed.sequence.fetch_add(2, std::memory_order_seq_cst);
  publish(slot_number);
}

Status RegionTable::refresh(const Registration& registration,
                            const std::function<void(RegionParts&)>& reread, int timeout_ms) {
  if (file().inherited()) return Error{EPERM, "the region is the parent's"};
  struct Suspension {
    Suspension(RegionTable& its_table, std::uint32_t its_slot)
        : table(its_table), slot(its_slot), enabled(table.suspend(slot)) {}
    ~Suspension() { table.resume(slot, enabled); }
    RegionTable& table;
    const std::uint32_t slot;
    const bool enabled;
  };
  const Suspension suspension(*this, registration.slot);
  if (!wait_until_unused(registration.slot, timeout_ms)) {
    return Error{EBUSY, "a stopped peer is in the middle of a copy to or from the region"};
  }
  if (!reread) return {};
  RegionParts parts = parts_of(registration);
  reread(parts);
  return store_parts(registration.slot, parts);
}

void RegionTable::report_accesses(const Registration& registration, Access access) {
  slot(registration.slot).access.fetch_or(report_bits(access), std::memory_order_release);
  const std::lock_guard guard(mutex_);
  publish(registration.slot);
}

bool RegionTable::used_by_anybody(std::uint32_t slot_number) const {
  std::uint32_t end = header().users_end.load(std::memory_order_acquire);
  if (end > kMaxUsers) end = kMaxUsers;
  if (!memory_->map_users(end)) return true;
  UserRecord* const users = memory_->users();
  for (std::uint32_t i = 0; i < end; ++i) {
    for (auto& hazard : users[i].hazards) {
      if (hazard.load(std::memory_order_acquire) != slot_number + 1) continue;
      if (file().holder(kUserLock + i)) return true;
      // It died in the middle of a copy; by now another user may have its record.
      std::uint64_t stale = slot_number + 1;
      hazard.compare_exchange_strong(stale, 0, std::memory_order_relaxed);
    }
  }
  return false;
}

bool RegionTable::wait_until_unused(std::uint32_t slot_number, int timeout_ms) {
  if (header().users_end.load(std::memory_order_acquire) == 0) return true;
  // After this every user either sees the odd sequence or has shown its hazard to us.
  os::remote_barrier();
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (used_by_anybody(slot_number)) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// Takes a live region out of the index; users find it no more. False when that was done before: a
// removal that had to give up.
bool RegionTable::close(std::uint32_t slot_number) {
  const std::lock_guard guard(mutex_);
  RegionSlot& closed = slot(slot_number);
  const std::uint32_t sequence = closed.sequence.load(std::memory_order_relaxed);
  if (sequence % 2 != 0) return false;
  closed.sequence.store(sequence + 1, std::memory_order_seq_cst);
  publish(slot_number);
  erase_from_index(slot_number);
  --live_;
  return true;
}

Status RegionTable::remove(const Registration& registration, int timeout_ms) {
  if (file().inherited()) return {};  // a forked child lets go of what is its parent's
  close(registration.slot);
  if (!wait_until_unused(registration.slot, timeout_ms)) {
    return Error{EBUSY, "a stopped peer is in the middle of a copy to or from the region"};
  }
  const std::lock_guard guard(mutex_);
  if (registration.short_key) short_keys_.give_back(registration.key);
  devices_->remove(registration.slot);
  free_slots(registration.slot + 1);
  return {};
}

}  // namespace weft::memory
