// SPDX-License-Identifier: BSD-2-Clause
// Which memory of devices does a domain take, and what copies it? fi_mr(3), FI_HMEM, and fi_set_ops
// of fi_domain(3)
#pragma once

#include <rdma/fi_domain.h>

#include <atomic>

#include "base/result.h"
#include "hmem/drivers.h"
#include "memory/copier.h"

namespace weft::fabric {

// A program's functions for copies (FI_SET_OPS_HMEM_OVERRIDE).
class OverridingCopier final : public memory::Copier {
 public:
  void set(const fi_hmem_override_ops& functions) { functions_ = functions; }
  bool is_set() const { return functions_.size != 0; }

  // Error: that of the function; EIO when it has copied another number of bytes.
  int to_host(void* host, const memory::MemoryPlace& place, std::span<const LocalRange> buffers,
              std::uint64_t offset, std::uint64_t length) override;
  int from_host(const memory::MemoryPlace& place, std::span<const LocalRange> buffers,
                std::uint64_t offset, const void* host, std::uint64_t length) override;

 private:
  fi_hmem_override_ops functions_{};
};

// The copier of a domain that was opened with FI_HMEM. Any thread; override() before the first
// region.
class DomainMemory {
 public:
  // Drivers that are installed are used from now on: they tell whose memory an address is.
  DomainMemory();

  // fi_set_ops(3). Errors: -FI_EINVAL for another size, or without one of the functions; -FI_EBUSY
  // after memory_of().
  int override(const fi_hmem_override_ops& functions);

  // How such memory is reached: without a copier by the processor. Errors: ENOSYS for a kind
  // without a driver, EINVAL for a device that there is not, or flags that exclude each other.
  Result<memory::DeviceMemory> memory_of(const fi_mr_attr& attributes, std::uint64_t flags);

  // True when a driver in use knows the address as memory of a device.
  bool is_of_device(const void* address) const;

 private:
  Result<memory::DeviceMemory> find(const fi_mr_attr& attributes, std::uint64_t flags);

  hmem::Drivers& drivers_ = hmem::Drivers::of_process();
  OverridingCopier override_;
  std::atomic<bool> is_used_{false};  // by a region
};

}  // namespace weft::fabric
