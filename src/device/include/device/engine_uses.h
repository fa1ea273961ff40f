// SPDX-License-Identifier: BSD-2-Clause
// What drives an engine that several objects share?
#pragma once

#include <algorithm>
#include <mutex>
#include <vector>

#include "base/result.h"

namespace weft::device {

// Counts for how many of the users of an engine each group, registry or thread drives it: the
// engine joins it with the first use, and leaves it with the last. Any thread.
class EngineUses {
 public:
  // One use more: calls join() for the first one. An error of join() is returned, and then there is
  // no use more.
  template <class Join>
  Status add(const void* driver, Join join) {
    const std::lock_guard guard(mutex_);
    const auto found = find(driver);
    if (found != uses_.end()) {
      ++found->count;
      return {};
    }
    uses_.push_back({driver, 1});
    Status joined = join();
    if (!joined) uses_.pop_back();
    return joined;
  }
  // One use less: calls leave() for the last one. Nothing without a use.
  template <class Leave>
  void remove(const void* driver, Leave leave) {
    const std::lock_guard guard(mutex_);
    const auto found = find(driver);
    if (found == uses_.end() || --found->count != 0) return;
    uses_.erase(found);
    leave();
  }

 private:
  struct DriverUse {
    const void* driver;
    unsigned count;
  };

  std::vector<DriverUse>::iterator find(const void* driver) {
    return std::find_if(uses_.begin(), uses_.end(),
                        [&](const DriverUse& use) { return use.driver == driver; });
  }

  std::mutex mutex_;
  std::vector<DriverUse> uses_;
};

}  // namespace weft::device
