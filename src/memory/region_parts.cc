// SPDX-License-Identifier: BSD-2-Clause
// Which bytes of a region are closed until they are refreshed? fi_mr(3), FI_MR_MMU_NOTIFY
#include "memory/region_parts.h"

#include <algorithm>

namespace weft::memory {
namespace {

// Appends a part, to the last one if it goes on there.
void append(RegionParts& parts, const RegionPart& part) {
  if (part.length == 0 && !parts.empty()) return;
  if (!parts.empty()) {
    RegionPart& last = parts.back();
    if (last.closed == part.closed && last.base + last.length == part.base) {
      last.length += part.length;
      return;
    }
  }
  parts.push_back(part);
}

}  // namespace

bool contain(const RegionParts& parts, std::uint64_t base, std::uint64_t length) {
  std::uint64_t from = base;
  std::uint64_t left = length;
  for (const RegionPart& part : parts) {
    const bool begins_here = from >= part.base && from - part.base <= part.length;
    if (!begins_here) {
      from = base;  // what was found before does not go on here
      left = length;
      if (from < part.base || from - part.base > part.length) continue;
    }
    const std::uint64_t here = std::min(left, part.length - (from - part.base));
    from += here;
    left -= here;
    if (left == 0) return true;
  }
  return false;
}

void set_closed(RegionParts& parts, std::uint64_t base, std::uint64_t length, bool closed) {
  RegionParts changed;
  for (const RegionPart& part : parts) {
    const std::uint64_t end = part.base + part.length;
    const std::uint64_t from = std::clamp(base, part.base, end);
    const std::uint64_t to = std::clamp(base + length, from, end);
    append(changed, {part.base, from - part.base, part.closed});
    append(changed, {from, to - from, closed});
    append(changed, {to, end - to, part.closed});
  }
  // A first part without bytes stands for an empty region only.
  if (changed.size() > 1 && changed.front().length == 0) changed.erase(changed.begin());
  parts = std::move(changed);
}

}  // namespace weft::memory
