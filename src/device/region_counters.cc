// SPDX-License-Identifier: BSD-2-Clause
// Which counters count what peers do with a region? fi_mr_bind(3)
#include "device/region_counters.h"

#include <iterator>

namespace weft::device {
namespace {

bool overlap(Access a, Access b) {
  return (static_cast<std::uint32_t>(a) & static_cast<std::uint32_t>(b)) != 0;
}

}  // namespace

bool RegionCounters::bind(RegionKey region, const void* owner, Access access, Counter& counter) {
  const std::lock_guard guard(mutex_);
  const auto [first, last] = bound_.equal_range(region);
  for (auto entry = first; entry != last; ++entry) {
    if (entry->second.owner == owner && overlap(entry->second.access, access)) return false;
  }
  bound_.emplace(region, Bound{owner, access, &counter, Use(counter)});
  return true;
}

void RegionCounters::release(RegionKey region, const void* owner) {
  const std::lock_guard guard(mutex_);
  auto [entry, last] = bound_.equal_range(region);
  while (entry != last) {
    entry = entry->second.owner == owner ? bound_.erase(entry) : std::next(entry);
  }
}

void RegionCounters::count(RegionKey region, Access access) {
  const std::lock_guard guard(mutex_);
  const auto [first, last] = bound_.equal_range(region);
  if (first == last) return;
  const void* const owner = std::prev(last)->second.owner;
  for (auto entry = first; entry != last; ++entry) {
    const Bound& bound = entry->second;
    if (bound.owner == owner && overlap(bound.access, access)) bound.counter->add(1);
  }
}

}  // namespace weft::device
