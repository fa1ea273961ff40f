// SPDX-License-Identifier: BSD-2-Clause
// Which drivers of devices does this process use?
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/result.h"
#include "memory/copier.h"

namespace weft::hmem {

using memory::Copier;
using memory::kMemoryKinds;
using memory::MemoryKind;
using memory::MemoryPlace;

class Driver;
enum class Towards : std::uint8_t;

// "CUDA".
const char* name_of(MemoryKind kind);

// The copier by the drivers of the devices' makers. Their libraries are loaded when they are first
// asked for. Any thread.
class Drivers final : public Copier {
 public:
  // Those of the process.
  static Drivers& of_process();
  ~Drivers();
  Drivers(const Drivers&) = delete;
  Drivers& operator=(const Drivers&) = delete;

  // Whether memory of that place can be copied. Errors: ENOSYS when the driver's library is not
  // installed, lacks a function or finds no device; EINVAL for a device that there is not.
  Status use(const MemoryPlace& place);
  // Where the memory at that address is, as far as the drivers in use know; of the host otherwise.
  MemoryPlace find(const void* address);

  // Copier. ENOSYS for a kind that is not in use, EINVAL for more bytes than the buffers have, EIO
  // when the driver fails.
  int to_host(void* host, const MemoryPlace& place, std::span<const LocalRange> buffers,
              std::uint64_t offset, std::uint64_t length) override;
  int from_host(const MemoryPlace& place, std::span<const LocalRange> buffers, std::uint64_t offset,
                const void* host, std::uint64_t length) override;

 private:
  Drivers();
  Driver* driver(MemoryKind kind);
  int copy(Towards towards, void* host, const MemoryPlace& place,
           std::span<const LocalRange> buffers, std::uint64_t offset, std::uint64_t length);

  std::mutex mutex_;
  // Written once each, with the mutex held.
  std::atomic<Driver*> loaded_[kMemoryKinds] = {};
  std::unique_ptr<Driver> owned_[kMemoryKinds];
};

}  // namespace weft::hmem
