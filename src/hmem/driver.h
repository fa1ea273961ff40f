// SPDX-License-Identifier: BSD-2-Clause
// What does a driver of devices do for Weft?
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "memory/copier.h"

namespace weft::hmem {

enum class Towards : std::uint8_t { kHost, kDevice };

// The driver of one kind of devices. Functions return 0 or the driver's own number of an error. Any
// thread.
class Driver {
 public:
  virtual ~Driver() = default;

  // Whether there is that device.
  virtual bool has_device(std::uint64_t device) const = 0;
  // True when the driver knows the address as memory that only its devices may touch; `device` is
  // its number then.
  virtual bool owns(const void* address, std::uint64_t& device) = 0;
  // Copies between memory of that device and of the host. The bytes are in place when it returns.
  virtual std::int64_t copy(Towards towards, std::uint64_t device, void* there, void* host,
                            std::size_t length) = 0;
};

// Each loads the library of its maker. Error: ENOSYS, with what is missing.
Result<std::unique_ptr<Driver>> load_cuda();
Result<std::unique_ptr<Driver>> load_rocr();
Result<std::unique_ptr<Driver>> load_ze();

}  // namespace weft::hmem
