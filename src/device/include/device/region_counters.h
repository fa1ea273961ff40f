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
  // counts yet (false, and nothing is bound). It is in use from now on.
  bool bind(RegionKey region, Access access, Counter& counter);
  // Nothing counts accesses to that region any more.
  void release(RegionKey region);
  // A peer accessed it, in a way that needs the rights `access`.
  void count(RegionKey region, Access access);

 private:
  struct Bound {
    Access access;
    Counter* counter;
    Use use;
  };

  std::mutex mutex_;
  std::multimap<RegionKey, Bound> bound_;
};

}  // namespace weft::device
