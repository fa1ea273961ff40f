// SPDX-License-Identifier: BSD-2-Clause
// Which bytes of a region are closed until they are refreshed? fi_mr(3), FI_MR_MMU_NOTIFY
#include "memory/region_parts.h"

#include <algorithm>

namespace weft::memory {
namespace {

// Ranges may end at 2^64: so no end of one is computed here.
bool has(std::uint64_t base, std::uint64_t length, std::uint64_t address) {
  return address - base < length;
}

bool has(const LocalRange& range, std::uint64_t address) {
  return has(reinterpret_cast<std::uint64_t>(range.base), range.length, address);
}

bool is_mapped(std::span<const os::AddressRange> mapped, std::uint64_t address) {
  const auto after = std::ranges::upper_bound(mapped, address, {}, &os::AddressRange::begin);
  return after != mapped.begin() && address < std::prev(after)->end;
}

// Where the state may change, in the order of the addresses.
std::vector<std::uint64_t> cuts_of(std::span<const LocalRange> ranges,
                                   std::span<const os::AddressRange> mapped) {
  std::vector<std::uint64_t> cuts;
  for (const LocalRange& range : ranges) {
    const auto base = reinterpret_cast<std::uint64_t>(range.base);
    cuts.insert(cuts.end(), {base, base + range.length});
  }
  for (const os::AddressRange& range : mapped) cuts.insert(cuts.end(), {range.begin, range.end});
  std::ranges::sort(cuts);
  return cuts;
}

// Appends a part, to the last one if it goes on there.
void append(RegionParts& parts, const RegionPart& part) {
  if (part.length == 0 && !parts.empty()) return;
  if (!parts.empty()) {
    RegionPart& last = parts.back();
    if (last.closed == part.closed && last.base + last.length == part.base) {
      last.length += part.length;
      return;
    }
    if (last.length == 0) parts.pop_back();  // it stands for an empty region only
  }
  parts.push_back(part);
}

}  // namespace

bool contain(const RegionParts& parts, const LocalRange& range) {
  const auto base = reinterpret_cast<std::uint64_t>(range.base);
  for (std::uint64_t done = 0; done < range.length;) {
    const std::uint64_t at = base + done;
    const auto part = std::ranges::find_if(
        parts, [&](const RegionPart& each) { return has(each.base, each.length, at); });
    if (part == parts.end()) return false;
    done += std::min(range.length - done, part->length - (at - part->base));
  }
  return true;
}

RegionParts looked_at(const RegionParts& parts, std::span<const LocalRange> ranges,
                      std::span<const os::AddressRange> mapped) {
  const std::vector<std::uint64_t> cuts = cuts_of(ranges, mapped);
  RegionParts changed;
  for (const RegionPart& part : parts) {
    const auto state_at = [&](std::uint64_t address) {
      const bool looked =
          std::ranges::any_of(ranges, [&](const LocalRange& range) { return has(range, address); });
      return looked ? !is_mapped(mapped, address) : part.closed;
    };
    auto cut = std::ranges::upper_bound(cuts, part.base);
    for (std::uint64_t done = 0; done < part.length || done == 0;) {
      while (cut != cuts.end() && *cut == part.base + done) ++cut;
      const bool ends_here = cut != cuts.end() && has(part.base, part.length, *cut);
      const std::uint64_t next = ends_here ? *cut - part.base : part.length;
      append(changed, {part.base + done, next - done, state_at(part.base + done)});
      if (next == 0) break;
      done = next;
    }
  }
  return changed;
}

}  // namespace weft::memory
