// SPDX-License-Identifier: BSD-2-Clause
// Which local buffers may the operations of a domain use? fi_mr(3), FI_MR_LOCAL
#include "local_descriptors.h"

#include <atomic>

#include "memory/region_table.h"

namespace weft::fabric {

using memory::AccessError;

// Only checks of other threads hold these entries, for a moment.
LocalDescriptor::~LocalDescriptor() {
  for (const memory::Registration& segment : segments_) static_cast<void>(table_->remove(segment));
}

Status LocalDescriptor::add(DomainId domain, const LocalRange& segment, Access rights,
                            const memory::DeviceMemory& device) {
  memory::RegionAttributes wanted;
  wanted.domain = domain;
  wanted.access = rights;
  wanted.base = wanted.start = reinterpret_cast<std::uint64_t>(segment.base);
  wanted.length = segment.length;
  wanted.device = device;
  wanted.key = RegionKey{first_.v + segments_.size()};
  const auto added = table_->add(wanted);
  if (!added) return added.error();
  segments_.push_back(added.value());
  return {};
}

Result<std::unique_ptr<LocalDescriptors>> LocalDescriptors::open(device::Device& device) {
  auto guard = memory::AccessGuard::attach(device.regions_of_users());
  if (!guard) return guard.error();
  return std::unique_ptr<LocalDescriptors>(new LocalDescriptors(device, std::move(guard).value()));
}

Result<std::unique_ptr<LocalDescriptor>> LocalDescriptors::add(std::span<const LocalRange> segments,
                                                               Access rights,
                                                               const memory::DeviceMemory& device) {
  // No other domain of the process has the same one.
  static std::atomic<std::uint64_t> next{memory::kMaxSegments};
  const RegionKey first{next.fetch_add(memory::kMaxSegments, std::memory_order_relaxed)};
  auto made = std::make_unique<LocalDescriptor>(device_.regions(), first);
  for (const LocalRange& segment : segments) {
    if (const Status added = made->add(domain_, segment, rights, device); !added)
      return added.error();
  }
  return made;
}

// The bounds of the region are named if it has one segment.
RefusedAccess LocalDescriptors::check(const LocalRange& buffer, const void* descriptor, Access need,
                                      memory::DeviceMemory& device) {
  if (buffer.length == 0) return {};
  const auto key = reinterpret_cast<std::uint64_t>(descriptor);
  RemoteRange range{reinterpret_cast<std::uint64_t>(buffer.base), buffer.length, RegionKey{key}};
  constexpr int kUnknown = static_cast<int>(AccessError::kUnknownKey);
  RefusedAccess first{.reason = memory::kLocalRefusal + kUnknown, .range = range};
  if (key % memory::kMaxSegments != 0) return first;
  const std::lock_guard lock(mutex_);
  for (std::uint32_t i = 0; i < memory::kMaxSegments; ++i) {
    range.key = RegionKey{key + i};
    const AccessError error = guard_->check_and_pin({domain_, need}, need, {&range, 1}).error;
    if (error == AccessError::kNone) device = guard_->device_memory();
    guard_->release();
    if (error == AccessError::kNone) return {};
    if (i == 0) {
      first = guard_->refused(error, {&range, 1});
      first.reason += memory::kLocalRefusal;
    } else if (error != AccessError::kUnknownKey) {
      first.region_known = false;
    }
    const bool elsewhere = error == AccessError::kBeforeStart || error == AccessError::kPastEnd;
    if (!elsewhere) break;  // the last segment was looked at, or it makes no difference which
  }
  return first;
}

}  // namespace weft::fabric
