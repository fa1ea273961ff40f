// SPDX-License-Identifier: BSD-2-Clause
// Can the owner of a region table mislead a user that checks an access with it?
#include <algorithm>
#include <vector>

#include "memory/access_guard.h"
#include "playground.h"

namespace weft::fuzz {
namespace {

using memory::IndexWord;
using memory::RegionSlot;

constexpr DomainId kDomain{3};

constexpr std::uint32_t kPlayedStripes = 3;

// A table whose words anybody may write, and that is zero again for the next run.
class Table {
 public:
  Table()
      : file_(std::move(os::SharedFile::create(directory_.path() + "/table", memory::kTableSize))
                  .value()),
        memory_(std::move(file_->map(0, memory::kTableSize)).value()) {
    auto& header = *memory_.at<memory::TableHeader>(0);
    header.magic = memory::kTableMagic;
    header.version = memory::kTableVersion;
    require(file_->publish().ok(), "the table has no name");
  }
  std::unique_ptr<memory::AccessGuard> user() {
    auto table = memory::RegionTableView::open(directory_.path(), "table");
    require(table.ok(), "the table cannot be opened");
    return std::move(memory::AccessGuard::attach(table.value())).value();
  }
  memory::TableHeader& header() { return *memory_.at<memory::TableHeader>(0); }
  RegionSlot& slot(std::uint64_t number) {
    auto& found = memory_.at<RegionSlot>(memory::kSlotsAt)[number % memory::kMaxRegions];
    slots_.push_back(&found);
    return found;
  }
  std::atomic<std::uint32_t>& entry(IndexWord word, std::uint64_t at) {
    auto& found = memory_.at<std::atomic<std::uint32_t>>(word.at())[at & (word.entries() - 1)];
    entries_.push_back(&found);
    return found;
  }
  std::atomic<std::uint64_t>& stripe(std::uint32_t number) {
    return stripes_->stripes()[number].holder;
  }
  memory::StripeLocks& locks() { return locks_; }
  memory::UserRecord& record(std::uint32_t number) {
    return memory_.at<memory::UserRecord>(memory::kUsersAt)[number];
  }
  void clean() {
    for (auto* slot : slots_) std::memset(static_cast<void*>(slot), 0, sizeof *slot);
    for (auto* entry : entries_) entry->store(0);
    slots_.clear();
    entries_.clear();
    for (std::uint32_t i = 0; i < kPlayedStripes; ++i) stripe(i) = 0;
    header().users_end = 0;
    header().index_word = IndexWord{}.pack();
  }

 private:
  Directory directory_;
  os::SharedFilePtr file_;
  os::Mapping memory_;
  const std::shared_ptr<memory::StripeTable> stripes_ =
      std::make_shared<memory::StripeTable>(directory_.path());
  memory::StripeLocks locks_{stripes_};
  std::vector<RegionSlot*> slots_;
  std::vector<std::atomic<std::uint32_t>*> entries_;
};

void write_slot(Table& table, Input& input) {
  RegionSlot& slot = table.slot(input.number({1, 64, memory::kMaxRegions}));
  slot.sequence = input.byte() < 200 ? 2 : input.byte();
  slot.access = input.byte() < 200 ? 0x3f : static_cast<std::uint32_t>(input.word());
  slot.key = input.byte() % 4;
  slot.domain = input.byte() < 200 ? kDomain.v : input.word();
  slot.base = input.number({4096, 1ull << 47});
  slot.length = input.number({1, 4096, 1ull << 63});
  slot.start = input.number({1, 4096, 1ull << 63});
  slot.segment = input.number({1, 4096, 1ull << 63});
  slot.next = input.byte() < 128 ? 0 : static_cast<std::uint32_t>(input.number({64, 1ull << 32}));
}

// Are the first `length` bytes of those places bytes of the region of that slot, and of a segment
// each? Returns how many places they are.
std::size_t check_places(Table& table, const RegionSlot& region, std::uint64_t offset,
                         std::uint64_t length, std::span<const LocalRange> places) {
  std::size_t count = 0;
  const RegionSlot* slot = &region;
  while (length != 0) {
    const bool alone = region.next == 0;
    const std::uint64_t segment = alone ? region.length.load() : slot->segment.load();
    if (offset < segment) {
      require(count < places.size(), "fewer bytes were granted than asked for");
      const LocalRange& place = places[count++];
      require(reinterpret_cast<std::uint64_t>(place.base) == slot->base + offset &&
                  place.length == std::min(segment - offset, length),
              "an access was allowed beyond its segment");
      length -= place.length;
    }
    offset -= std::min(offset, segment);
    if (length == 0) break;
    require(slot->next != 0, "more bytes were granted than there are segments for");
    slot = &table.slot(slot->next - 1);
  }
  return count;
}

void write_index(Table& table, Input& input) {
  IndexWord word = IndexWord::unpack(table.header().index_word.load());
  if (!word.valid()) word = {};
  const std::uint64_t at = memory::hash_key(kDomain, RegionKey{input.byte() % 4u});
  const std::uint64_t count = input.byte() < 250 ? input.byte() % 4u + 1 : 1024;
  const auto value =
      static_cast<std::uint32_t>(input.number({2, memory::kMaxRegions, memory::kTombstone, 65}));
  for (std::uint64_t i = 0; i < count; ++i) table.entry(word, at + i) = value;
}

void hold(Table& table, memory::AccessGuard& user, Input& input) {
  RemoteRange ranges[memory::kHazards + 1];
  const std::size_t count = input.byte() % (memory::kHazards + 2);
  for (std::size_t i = 0; i < count; ++i) {
    ranges[i] = {input.number({1, 4096, 1ull << 63}), input.number({1, 4096, 1ull << 63}),
                 RegionKey{input.byte() % 4u}};
  }
  const Access need = input.byte() % 2 == 0 ? Access::kRemoteRead : Access::kRemoteWrite;
  const memory::Grant grant = user.check_and_pin(kDomain, need, {ranges, count});
  auto out = grant.segments;
  auto& hazards = table.record(0).hazards;
  if (!grant.ok()) {
    require(grant.culprit < count, "a range was refused that was not named");
    for (auto& hazard : hazards) require(hazard.load() == 0, "a refused access holds a region");
    const RemoteRange& refused = ranges[grant.culprit];
    require(!user.explain(grant.error, need, refused).empty(), "a refusal without words");
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (ranges[i].length == 0) {
      require(!out.empty() && out[0].length == 0, "an access of no bytes was given some");
      out = out.subspan(1);
      continue;  // allowed whatever its key and address
    }
    const std::uint64_t held = hazards[i].load();
    require(held != 0 && held <= memory::kMaxRegions, "an allowed access holds nothing");
    const RegionSlot& slot = table.slot(held - 1);
    const std::uint64_t offset = ranges[i].address - slot.start.load();
    require(slot.sequence % 2 == 0 && slot.key == ranges[i].key.v && slot.domain == kDomain.v &&
                includes(static_cast<Access>(slot.access.load()), need),
            "an access was allowed by a region that is not the one");
    require(ranges[i].address >= slot.start && offset <= slot.length &&
                ranges[i].length <= slot.length - offset,
            "an access was allowed beyond its region");
    out = out.subspan(check_places(table, slot, offset, ranges[i].length, out));
  }
  require(out.empty(), "more places were granted than there are ranges for");
  user.release();
}

// A stripe's word never names a live holder: a user would wait for that one.
void write_stripe(Table& table, Input& input) {
  std::uint64_t word = input.number({memory::kMaxStripeUsers, 0x3fff, 1ull << 32});
  if (memory::StripeWord::unpack(word).user == 0) ++word;
  table.stripe(input.byte() % kPlayedStripes) = word;
}

void lock(Table& table, Input& input) {
  const std::uint64_t page = input.below(2);
  const std::uint64_t other = page + input.below(2);
  const auto wait = input.byte() < 16 ? memory::LockWait::kUsual : memory::LockWait::kBrief;
  const int error = table.locks().lock(page, other, wait);
  const auto held = [&](std::uint64_t at) {
    const std::uint64_t word = table.stripe(memory::stripe_of(at));
    return word != 0 && memory::StripeWord::unpack(word).user == 0;
  };
  if (wait == memory::LockWait::kUsual) require(error == 0, "a dead holder was waited for");
  require((error == 0) == (held(page) && held(other)),
          "a stripe is held that was not granted, or the other way round");
  table.locks().unlock();
  require(!held(page) && !held(other), "a stripe stays held");
}

void play(Table& table, Input& input) {
  table.clean();
  auto user = table.user();
  for (int step = 0; step < 100 && !input.empty(); ++step) {
    switch (input.byte() % 8) {
      case 0:
      case 1:
        write_slot(table, input);
        break;
      case 2:
        write_index(table, input);
        break;
      case 6:
        write_stripe(table, input);
        break;
      case 7:
        lock(table, input);
        break;
      case 3:
        if (input.byte() >= 128) {
          const auto generation = static_cast<std::uint32_t>(input.number({1, 0xffffff}));
          const auto bits = input.byte() < 250 ? 10 + input.byte() % 3u : input.byte();
          table.header().index_word = generation << 8 | bits;
        } else {
          table.header().users_end = static_cast<std::uint32_t>(input.word());
        }
        break;
      default:
        hold(table, *user, input);
    }
  }
  user.reset();
}

}  // namespace
}  // namespace weft::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static weft::fuzz::Table table;
  weft::fuzz::Input input(data, size);
  weft::fuzz::play(table, input);
  return 0;
}
