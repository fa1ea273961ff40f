// SPDX-License-Identifier: BSD-2-Clause
// How do peers of the host find a shared receive queue of an XRC domain? (annex A14)
#pragma once

#include <memory>

#include "base/result.h"
#include "base/types.h"
#include "device/device.h"
#include "memory/region_table.h"

namespace weft::queue {

// Peers of this host access memory of the queue's protection domain through targets of that group
// (SharedReceives::group()) while this exists.
class SharedEntry {
 public:
  // Errors: those of memory::RegionTable::add().
  static Result<std::unique_ptr<SharedEntry>> add(std::shared_ptr<device::Device> device,
                                                  std::uint32_t number, DomainId domain,
                                                  std::uint32_t group);
  // A barrier: when it returns no peer accesses memory by this queue.
  ~SharedEntry();
  SharedEntry(const SharedEntry&) = delete;
  SharedEntry& operator=(const SharedEntry&) = delete;

 private:
  SharedEntry(std::shared_ptr<device::Device> device, const memory::Registration& registration)
      : device_(std::move(device)), registration_(registration) {}

  const std::shared_ptr<device::Device> device_;
  const memory::Registration registration_;
};

}  // namespace weft::queue
