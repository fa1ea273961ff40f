// SPDX-License-Identifier: BSD-2-Clause
// How are bytes copied between memory of the host and of a device?
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.h"

namespace weft::memory {

// Kinds of memory, numbered as enum fi_hmem_iface of fi_mr(3).
enum class MemoryKind : std::uint8_t { kSystem = 0, kCuda = 1, kRocr = 2, kZe = 3 };
inline constexpr std::size_t kMemoryKinds = 4;

// Where memory is: its kind, and the device as fi_mr(3) numbers it (CUdevice; the index of a
// ze_device_handle_t).
struct MemoryPlace {
  MemoryKind kind = MemoryKind::kSystem;
  std::uint64_t device = 0;

  bool is_host() const { return kind == MemoryKind::kSystem; }
};

// Copies `length` bytes, behind the first `offset` ones of a list of buffers in memory of `place`,
// which has as many; `host` is memory of the host that does not overlap them. The bytes are there
// when a function returns. Each returns 0 or an errno. Any thread.
class Copier {
 public:
  virtual int to_host(void* host, const MemoryPlace& place, std::span<const LocalRange> buffers,
                      std::uint64_t offset, std::uint64_t length) = 0;
  virtual int from_host(const MemoryPlace& place, std::span<const LocalRange> buffers,
                        std::uint64_t offset, const void* host, std::uint64_t length) = 0;

 protected:
  ~Copier() = default;
};

// How the bytes of a region are reached. The copier outlives the region.
struct DeviceMemory {
  Copier* copier = nullptr;
  MemoryPlace place;
};

}  // namespace weft::memory
