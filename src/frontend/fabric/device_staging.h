// SPDX-License-Identifier: BSD-2-Clause
// How does an operation use buffers in memory of devices?
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "memory/copier.h"
#include "messaging/staging.h"
#include "offer.h"
#include "transfer_rules.h"

namespace weft::fabric {

// Stands for the buffers of one operation that are memory of devices; its other buffers stay as
// they are.
class DeviceStaging final : public messaging::Staging {
 public:
  // Puts lists of its own in the place of those of the uses. They live as long as the object.
  DeviceStaging(std::initializer_list<LocalUse> uses, const DeviceBuffers& devices);

  // Copies to the host what the operation sends or writes. An errno, or 0.
  int begin();
  int finish() override;
  int finish_part(std::span<const LocalRange> sges, std::uint64_t length) override;
  void* buffer_of(const void* staged) const override;

 private:
  struct StagedBuffer {
    LocalRange staged;
    LocalRange original;
    memory::DeviceMemory memory;  // without a copier when both are the same

    bool is_staged() const { return memory.copier != nullptr && original.length != 0; }
    int put_back(std::uint64_t offset, std::uint64_t length) const;
  };
  struct List {
    StagedBuffer buffers[kIovLimit];
    LocalRange sges[kIovLimit];
    std::size_t count = 0;
    bool is_filled = false;  // by the operation
  };
  const StagedBuffer* find(const void* staged) const;

  List lists_[DeviceBuffers::kLists];
  std::unique_ptr<std::byte[]> bytes_;
};

}  // namespace weft::fabric
