// SPDX-License-Identifier: BSD-2-Clause
// Which local buffers may the operations of a domain use? fi_mr(3), FI_MR_LOCAL
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "device/device.h"
#include "memory/access_guard.h"

namespace weft::fabric {

// Makes a region's segments usable by local operations, as long as it lives.
class LocalDescriptor {
 public:
  LocalDescriptor(memory::RegionTable& table, RegionKey first) : table_(&table), first_(first) {}
  ~LocalDescriptor();
  LocalDescriptor(const LocalDescriptor&) = delete;
  LocalDescriptor& operator=(const LocalDescriptor&) = delete;

  // Error: those of RegionTable::add().
  Status add(DomainId domain, const LocalRange& segment, Access rights,
             const memory::DeviceMemory& device);
  // The result of fi_mr_desc(3): not null, and never used again in this process.
  void* value() const { return reinterpret_cast<void*>(first_.v); }

 private:
  memory::RegionTable* const table_;
  const RegionKey first_;
  std::vector<memory::Registration> segments_;
};

// The descriptors of one domain. The segments of its regions are in the region table under a domain
// number of their own, with their virtual addresses and keys that follow each other, so that a
// local buffer is checked as an access of a peer is. Any thread.
class LocalDescriptors {
 public:
  // The device outlives the object. Errors: those of AccessGuard::attach().
  static Result<std::unique_ptr<LocalDescriptors>> open(device::Device& device);

  // Errors: those of RegionTable::add().
  // `device`: how the region is reached if it is memory of one.
  Result<std::unique_ptr<LocalDescriptor>> add(std::span<const LocalRange> segments, Access rights,
                                               const memory::DeviceMemory& device);

  // Whether the descriptor's region is live, one of its segments covers the buffer and it has the
  // right `need`: reason 0, else memory::kLocalRefusal and a memory::AccessError. A buffer of no
  // bytes needs no descriptor. Sets `device` to how an allowed buffer is reached.
  RefusedAccess check(const LocalRange& buffer, const void* descriptor, Access need,
                      memory::DeviceMemory& device);

 private:
  LocalDescriptors(device::Device& device, std::unique_ptr<memory::AccessGuard> guard)
      : device_(device), domain_(device.new_domain()), guard_(std::move(guard)) {}

  device::Device& device_;
  const DomainId domain_;
  std::mutex mutex_;
  const std::unique_ptr<memory::AccessGuard> guard_;
};

}  // namespace weft::fabric
