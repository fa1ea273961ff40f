// SPDX-License-Identifier: BSD-2-Clause
// May this access to a peer's memory happen, and if not, why not?
#include "memory/access_guard.h"

#include <algorithm>

#include "memory/explanation.h"
#include "memory/page_numbers.h"
#include "os/barrier.h"

namespace weft::memory {

const char* describe(AccessError error) {
  switch (error) {
    case AccessError::kNone:
      return "allowed";
    case AccessError::kUnknownKey:
      return "no region of the target's domain has this key";
    case AccessError::kBeforeStart:
      return "the access begins before the region";
    case AccessError::kPastEnd:
      return "the access ends past the region";
    case AccessError::kWraps:
      return "the access wraps around the end of the address space";
    case AccessError::kNoRight:
      return "the region was not registered with the right for this access";
    case AccessError::kTooMany:
      return "the operation names more remote ranges than possible";
    case AccessError::kNotServed:
      return "the target's endpoint was not opened for this access";
    case AccessError::kSplitElement:
      return "an element of the atomic operation lies in two segments of the region";
    case AccessError::kDisabled:
      return "the region is not enabled, or is being refreshed";
    case AccessError::kOtherBinding:
      return "the region is bound to another endpoint";
    case AccessError::kNotRefreshed:
      return "memory of the range is not refreshed";
    case AccessError::kOtherAuthorization:
      return "the region, or the target's endpoint, has another authorization key";
    case AccessError::kNotMapped:
      return "the key is not mapped";
  }
  return "unknown refusal";
}

const char* describe_local(AccessError error) {
  switch (error) {
    case AccessError::kUnknownKey:
      return "no live region of the domain has the descriptor of the local buffer";
    case AccessError::kBeforeStart:
      return "the local buffer begins before the region of its descriptor";
    case AccessError::kPastEnd:
      return "the local buffer ends past the region of its descriptor";
    case AccessError::kNoRight:
      return "the region of the local buffer was not registered with the right for this operation";
    case AccessError::kNone:
    case AccessError::kWraps:
    case AccessError::kTooMany:
    case AccessError::kNotServed:
    case AccessError::kSplitElement:
    case AccessError::kDisabled:
    case AccessError::kOtherBinding:
    case AccessError::kNotRefreshed:
    case AccessError::kOtherAuthorization:
    case AccessError::kNotMapped:
      break;
  }
  return describe(error);
}

const char* describe(const RefusedAccess& refused) {
  const bool local = refused.reason >= kLocalRefusal && refused.reason < 2 * kLocalRefusal;
  return local ? describe_local(static_cast<AccessError>(refused.reason - kLocalRefusal))
               : describe(static_cast<AccessError>(refused.reason));
}

Result<std::shared_ptr<RegionTableView>> RegionTableView::open(
    const std::string& directory, const std::string& name, std::shared_ptr<StripeTable> stripes) {
  if (name.empty() || name.find('/') != std::string::npos) {
    return Error{EPROTO, "the peer names no valid region table"};
  }
  auto file = os::SharedFile::open(directory + "/" + name);
  if (!file) return file.error();
  auto memory = TableMemory::of_user(std::move(file).value());
  if (!memory) return memory.error();
  const TableHeader& header = memory.value()->header();
  if (header.magic != kTableMagic || header.version != kTableVersion) {
    return Error{EPROTO, name + " is no region table of version " + std::to_string(kTableVersion)};
  }
  if (stripes == nullptr) stripes = std::make_shared<StripeTable>(directory);
  return std::make_shared<RegionTableView>(std::move(memory).value(), std::move(stripes));
}

Result<std::unique_ptr<AccessGuard>> AccessGuard::attach(std::shared_ptr<RegionTableView> table) {
  TableMemory& memory = *table->memory_;
  auto* users = memory.users();
  auto& end = memory.header().users_end;
  for (std::uint32_t i = 0; i < kMaxUsers; ++i) {
    if (!memory.file().claim(kUserLock + i)) continue;
    // All records up to this one, which the owner may look at from now on. Few tables have many
    // users.
    Status ok = memory.file().reserve(kUsersAt, (i + 1) * sizeof(UserRecord));
    if (ok) ok = memory.map_users(i + 1);
    if (!ok) {
      memory.file().disclaim(kUserLock + i);
      return ok.error();
    }
    users[i].heeds_barriers.store(os::heeds_remote_barriers(), std::memory_order_relaxed);
    for (auto& hazard : users[i].hazards) hazard.store(0, std::memory_order_relaxed);
    std::uint32_t seen = end.load(std::memory_order_relaxed);
    while (seen <= i && !end.compare_exchange_weak(seen, i + 1, std::memory_order_seq_cst)) {
    }
    return std::unique_ptr<AccessGuard>(new AccessGuard(std::move(table), i));
  }
  return Error{EUSERS, "the peer's region table has no room for another user"};
}

AccessGuard::AccessGuard(std::shared_ptr<RegionTableView> table, std::uint32_t record)
    : table_(std::move(table)),
      record_(record),
      mine_(table_->memory_->users()[record]),
      must_fence_(!os::heeds_remote_barriers() ||
                  table_->memory_->header().owner_raises_barriers == 0),
      slots_(table_->memory_->slots()),
      stripes_(table_->stripes_) {}

AccessGuard::~AccessGuard() {
  if (table_->memory_->file().inherited()) return;
  release();
  table_->memory_->file().disclaim(kUserLock + record_);
}

// The owner closes a region by an odd sequence, and changes it by another even one; then comes a
// barrier here, then a look at the hazards.
bool AccessGuard::read_slot(std::uint32_t number, DomainId domain, RegionKey key,
                            std::size_t hazard, Found& found, int& tries) {
  const RegionSlot& slot = slots_[number];
  for (; tries > 0; --tries) {
    const std::uint32_t sequence = slot.sequence.load(std::memory_order_acquire);
    if (sequence % 2 != 0 || slot.key.load(std::memory_order_relaxed) != key.v ||
        slot.domain.load(std::memory_order_relaxed) != domain.v) {
      return false;
    }
    found.access = static_cast<Access>(slot.access.load(std::memory_order_acquire));
    found.base = slot.base.load(std::memory_order_relaxed);
    found.length = slot.length.load(std::memory_order_relaxed);
    found.start = slot.start.load(std::memory_order_relaxed);
    found.next = slot.next.load(std::memory_order_relaxed);
    found.binding = slot.binding.load(std::memory_order_relaxed);
    mine_.hazards[hazard].store(number + 1, std::memory_order_release);
    if (must_fence_) {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    if (slot.sequence.load(std::memory_order_acquire) == sequence) [[likely]]
      return true;
    mine_.hazards[hazard].store(0, std::memory_order_release);
  }
  return false;
}

bool AccessGuard::search(IndexWord word, DomainId domain, RegionKey key, std::size_t hazard,
                         Found& found, int& tries) {
  TableMemory& memory = *table_->memory_;
  if (!memory.has_index(word)) return false;
  const auto* index = memory.index(word);
  std::uint64_t at = hash_key(domain, key);
  for (std::uint64_t probes = 0; probes < word.entries(); ++probes, ++at) {
    const std::uint32_t entry = index[at & (word.entries() - 1)].load(std::memory_order_acquire);
    if (entry == 0) return false;
    if (!memory.has_slot(entry - 1)) continue;  // a tombstone, or nonsense
    if (!read_slot(entry - 1, domain, key, hazard, found, tries)) continue;
    last_slot_ = entry - 1;
    return true;
  }
  return false;
}

bool AccessGuard::find(DomainId domain, RegionKey key, std::size_t hazard, Found& found) {
  int tries = 100;  // an owner that changes the region or the index more often is not in order
  if (last_slot_ < kMaxRegions && read_slot(last_slot_, domain, key, hazard, found, tries))
    return true;
  const auto& current = table_->memory_->header().index_word;
  std::uint32_t packed = current.load(std::memory_order_acquire);
  for (; tries > 0; --tries) {
    const IndexWord word = IndexWord::unpack(packed);
    if (!word.valid()) return false;
    if (search(word, domain, key, hazard, found, tries)) return true;
    const std::uint32_t now = current.load(std::memory_order_acquire);
    if (now == packed) return false;
    packed = now;
  }
  return false;
}

// The rule that forbids every access to a region, whatever its range.
AccessError AccessGuard::refusal_of(const Found& found, const Through& through) {
  const std::uint32_t state =
      static_cast<std::uint32_t>(found.access) & (kRegionDisabled | kAuthorizationBits);
  if (state != through.authorization << kAuthorizationShift) [[unlikely]]
    return (state & kRegionDisabled) != 0 ? AccessError::kDisabled
                                          : AccessError::kOtherAuthorization;
  const bool elsewhere = found.binding != 0 && found.binding != through.endpoint;
  return elsewhere ? AccessError::kOtherBinding : AccessError::kNone;
}

AccessError AccessGuard::check_and_pin_one(const Through& through, Access need,
                                           const RemoteRange& range, std::size_t hazard,
                                           std::size_t element) {
  Found found;
  const bool known = find(through.domain, range.key, hazard, found);
  if (range.length == 0) {
    grant(0, 0);
    const bool usable = known && refusal_of(found, through) == AccessError::kNone;
    if (usable && includes(found.access, need)) note_for_report(found, need, range.key);
    return AccessError::kNone;
  }
  if (!known) return AccessError::kUnknownKey;
  refused_ = found;
  const AccessError closed = refusal_of(found, through);
  if (closed != AccessError::kNone) return closed;
  if (!includes(found.access, need)) return AccessError::kNoRight;
  if (range.address + (range.length - 1) < range.address) return AccessError::kWraps;
  if (range.address < found.start) return AccessError::kBeforeStart;
  const std::uint64_t offset = range.address - found.start;
  if (offset > found.length || range.length > found.length - offset) return AccessError::kPastEnd;
  constexpr std::uint32_t kOwnWay = kPartNotRefreshed | kRegionOfDevice;
  const std::uint32_t state = static_cast<std::uint32_t>(found.access) & kOwnWay;
  if ((state & kRegionOfDevice) != 0) [[unlikely]] {
    if (table_->devices_ == nullptr) return AccessError::kNotServed;  // of another process
    device_slot_ = last_slot_;
  }
  if ((found.next | state) == 0) [[likely]] {
    grant(found.base + offset, range.length);
  } else if (const auto error = walk_segments(offset, range.length, element);
             error != AccessError::kNone) {
    return error;
  }
  note_for_report(found, need, range.key);
  return AccessError::kNone;
}

// Grants bytes of the region that find() has pinned.
void AccessGuard::grant(std::uint64_t base, std::uint64_t length) {
  granted_slots_[granted_count_] = last_slot_;
  granted_[granted_count_++] = {reinterpret_cast<void*>(base), length};
}

DeviceMemory AccessGuard::find_device_memory() const {
  return table_->devices_ != nullptr ? table_->devices_->find(device_slot_) : DeviceMemory{};
}

// The region is pinned: its segments stay as they are. Bytes that are not refreshed end the walk,
// and open parts of a segment have such bytes between them: so there is a grant for each segment.
AccessError AccessGuard::walk_segments(std::uint64_t offset, std::uint64_t length,
                                       std::size_t element) {
  const RegionSlot* slot = &slots_[last_slot_];
  const std::size_t most = granted_count_ + kMaxSegments;
  bool split = false;  // an element goes on in the next part
  for (std::uint32_t i = 0; i < kMaxParts; ++i) {
    const std::uint64_t segment = slot->segment.load(std::memory_order_relaxed);
    const std::uint64_t base = slot->base.load(std::memory_order_relaxed);
    const std::uint64_t part = std::min(segment - std::min(offset, segment), length);
    if (part != 0) {
      const std::uint32_t states = slot->access.load(std::memory_order_relaxed);
      if ((states & kPartNotRefreshed) != 0) return AccessError::kNotRefreshed;
      if (split) return AccessError::kSplitElement;
      if (granted_count_ == most) break;
      grant(base + offset, part);
      length -= part;
      if (length == 0) return AccessError::kNone;
      split = part % element != 0;
    }
    offset -= std::min(offset, segment);
    const std::uint32_t next = slot->next.load(std::memory_order_relaxed);
    if (next == 0 || !table_->memory_->has_slot(next - 1)) break;
    slot = &slots_[next - 1];
  }
  return AccessError::kPastEnd;  // the owner's table contradicts itself
}

void AccessGuard::note_for_report(const Found& found, Access need, RegionKey key) {
  if ((static_cast<std::uint32_t>(found.access) & report_bits(need)) == 0) [[likely]]
    return;
  const std::span<const RegionKey> before = keys_to_report();
  if (std::find(before.begin(), before.end(), key) == before.end())
    keys_to_report_[report_count_++] = key;
}

Grant AccessGuard::check_and_pin(const Through& through, Access need,
                                 std::span<const RemoteRange> ranges, std::size_t element) {
  release();
  report_count_ = 0;
  granted_count_ = 0;
  device_slot_ = kMaxRegions;
  culprit_ = 0;
  if (!includes(through.served, need)) return {AccessError::kNotServed, 0, {}};
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    AccessError error = AccessError::kTooMany;
    held_ = i + 1;
    if (i < kHazards) error = check_and_pin_one(through, need, ranges[i], i, element);
    if (error == AccessError::kNone) continue;
    release();
    culprit_ = static_cast<std::uint32_t>(i);
    return {error, i, {}};
  }
  return {AccessError::kNone, 0, {granted_, granted_count_}};
}

void AccessGuard::release() {
  for (std::size_t i = 0; i < held_ && i < kHazards; ++i) {
    mine_.hazards[i].store(0, std::memory_order_release);
  }
  held_ = 0;
}

std::uint32_t AccessGuard::shift_of(std::uint64_t address, std::uint64_t length) const {
  const pid_t owner = table_->memory_->file().holder(0).value_or(0);
  return page_shift(owner, address, length, table_->memory_->header().private_shift);
}

// The region is pinned, so it does not change.
std::uint32_t AccessGuard::find_shift(RegionSlot& region) const {
  std::uint32_t shift = 0;
  const RegionSlot* slot = &region;
  for (std::uint32_t i = 0; i < kMaxParts; ++i) {
    const std::uint64_t length = slot->segment.load(std::memory_order_relaxed);
    const std::uint32_t states = slot->access.load(std::memory_order_relaxed);
    if (length != 0 && (states & kPartNotRefreshed) == 0) {
      const std::uint32_t here = shift_of(slot->base.load(std::memory_order_relaxed), length);
      shift = shift == 0 || shift == here ? here : kShiftKnown | kShiftOfEachPage;
      if ((shift & kShiftOfEachPage) != 0) break;
    }
    const std::uint32_t next = slot->next.load(std::memory_order_relaxed);
    if (next == 0 || !table_->memory_->has_slot(next - 1)) break;
    slot = &slots_[next - 1];
  }
  region.shift.store(shift, std::memory_order_relaxed);
  return shift;
}

int AccessGuard::lock(std::size_t segment, LockWait wait) {
  const auto address = reinterpret_cast<std::uint64_t>(granted_[segment].base);
  const std::uint64_t last = address + (granted_[segment].length - 1);
  RegionSlot& region = slots_[granted_slots_[segment]];
  std::uint32_t shift = region.shift.load(std::memory_order_relaxed);
  if (shift == 0) [[unlikely]]
    shift = find_shift(region);
  const bool one_shift = (shift & kShiftOfEachPage) == 0;
  const std::uint32_t first_shift = one_shift ? shift : shift_of(address, 1);
  const std::uint32_t last_shift = one_shift ? shift : shift_of(last, 1);
  return stripes_.lock(address / kNumberedPage + first_shift, last / kNumberedPage + last_shift,
                       wait);
}

namespace {

const char* name_of(Access need) {
  const bool plain = need == Access::kRemoteWrite || need == Access::kRemoteRead;
  return plain ? word_for(need) : "atomic update";
}

}  // namespace

RefusedAccess AccessGuard::refused(AccessError error, std::span<const RemoteRange> ranges) const {
  RefusedAccess refused;
  refused.reason = static_cast<int>(error);
  if (ranges.empty()) {
    refused.ranges = 0;
  } else {
    refused.range = ranges[std::min<std::size_t>(culprit_, ranges.size() - 1)];
  }
  refused.region_known = error != AccessError::kUnknownKey && error != AccessError::kTooMany &&
                         error != AccessError::kNotServed;
  if (!refused.region_known) return refused;
  refused.region_start = refused_.start;
  refused.region_length = refused_.length;
  return refused;
}

std::string AccessGuard::explain(AccessError error, Access need, const RemoteRange& range) const {
  return memory::explain(refused(error, {&range, 1}), "rkey", name_of(need));
}

}  // namespace weft::memory
