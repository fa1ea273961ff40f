// SPDX-License-Identifier: BSD-2-Clause
// Which counters count what peers do with a region? fi_mr_bind(3)
#pragma once

#include <map>
#include <mutex>

#include "base/types.h"
#include "device/counter.h"

namespace weft::device {

// The counters of the regions of one domain. Any thread.
class RegionCounters {
 public:
  // `counter` counts accesses to the region that need one of the rights `access`, which no counter
  // of that owner counts yet (false, and nothing is bound). It is in use from now on. `owner` names
  // the registration: another one may have the same key as soon as this one has been removed.
  bool bind(RegionKey region, const void* owner, Access access, Counter& counter);
  // No counter of that owner counts accesses to the region any more.
  void release(RegionKey region, const void* owner);
  // A peer accessed it, in a way that needs the rights `access`: counts for the owner that bound
  // last, as the key is that one's.
  void count(RegionKey region, Access access);

 private:
  struct Bound {
    const void* owner;
    Access access;
    Counter* counter;
    Use use;
  };

  std::mutex mutex_;
  std::multimap<RegionKey, Bound> bound_;
};

}  // namespace weft::device
