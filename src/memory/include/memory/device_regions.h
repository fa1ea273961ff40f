// SPDX-License-Identifier: BSD-2-Clause
// Which regions of this process are memory of devices?
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "memory/copier.h"

namespace weft::memory {

// By the slots of a region table, which has only a flag of them (kRegionOfDevice). Any thread.
class DeviceRegions {
 public:
  void add(std::uint32_t slot, const DeviceMemory& memory) {
    const std::lock_guard guard(mutex_);
    regions_[slot] = memory;
  }
  void remove(std::uint32_t slot) {
    const std::lock_guard guard(mutex_);
    regions_.erase(slot);
  }
  // The entry of a region that is pinned. Without a copier when it is none of a device.
  DeviceMemory find(std::uint32_t slot) const {
    const std::lock_guard guard(mutex_);
    const auto found = regions_.find(slot);
    return found != regions_.end() ? found->second : DeviceMemory{};
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::uint32_t, DeviceMemory> regions_;
};

}  // namespace weft::memory
