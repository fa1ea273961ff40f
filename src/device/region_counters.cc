// SPDX-License-Identifier: BSD-2-Clause
// Which counters count what peers do with a region? fi_mr_bind(3)
#include "device/region_counters.h"

namespace weft::device {
namespace {

bool overlap(Access a, Access b) {
  return (static_cast<std::uint32_t>(a) & static_cast<std::uint32_t>(b)) != 0;
}

}  // namespace

bool RegionCounters::bind(RegionKey region, Access access, Counter& counter) {
  const std::lock_guard guard(mutex_);
  const auto [first, last] = bound_.equal_range(region);
  for (auto entry = first; entry != last; ++entry) {
    if (overlap(entry->second.access, access)) return false;
  }
  bound_.emplace(region, Bound{access, &counter, Use(counter)});
  return true;
}

void RegionCounters::release(RegionKey region) {
  const std::lock_guard guard(mutex_);
  bound_.erase(region);
}

void RegionCounters::count(RegionKey region, Access access) {
  const std::lock_guard guard(mutex_);
  const auto [first, last] = bound_.equal_range(region);
  for (auto entry = first; entry != last; ++entry) {
    if (overlap(entry->second.access, access)) entry->second.counter->add(1);
  }
}

}  // namespace weft::device
