// SPDX-License-Identifier: BSD-2-Clause
// How are bytes copied between memory of the host and of a device?
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.h"

namespace weft::hmem {

// Kinds of memory, numbered as enum fi_hmem_iface of fi_mr(3).
enum class Kind : std::uint8_t { kSystem = 0, kCuda = 1, kRocr = 2, kZe = 3 };
inline constexpr std::size_t kKinds = 4;

// "CUDA".
const char* name_of(Kind kind);

// Where memory is: its kind, and the device as fi_mr(3) numbers it (CUdevice; the index of a
// ze_device_handle_t).
struct Place {
  Kind kind = Kind::kSystem;
  std::uint64_t device = 0;

  bool is_host() const { return kind == Kind::kSystem; }
};

// Copies `length` bytes, behind the first `offset` ones of a list of buffers in memory of `place`,
// which has as many; `host` is memory of the host that does not overlap them. The bytes are there
// when a function returns. Each returns 0 or an errno. Any thread.
class Copier {
 public:
  virtual int to_host(void* host, const Place& place, std::span<const LocalRange> buffers,
                      std::uint64_t offset, std::uint64_t length) = 0;
  virtual int from_host(const Place& place, std::span<const LocalRange> buffers,
                        std::uint64_t offset, const void* host, std::uint64_t length) = 0;

 protected:
  ~Copier() = default;
};

}  // namespace weft::hmem
