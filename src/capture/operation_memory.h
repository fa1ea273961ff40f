// SPDX-License-Identifier: BSD-2-Clause
// Which bytes do the engines have that repeat an operation?
#pragma once

#include <span>

#include "memory/served_memory.h"
#include "work/local_memory.h"

namespace weft::capture {

// Stands for all memory: the operation has been done, and writes none again. The engines lose no
// packet, so each byte is read once, and in order. One thread at a time.
class OperationMemory final : public work::LocalMemory, public memory::ServedMemory {
 public:
  // Of the next operation: the bytes that its target had, or that its receiver has now, and how the
  // target has answered.
  void begin(std::span<const LocalRange> bytes, const memory::Accessed& verdict = {}) {
    bytes_ = bytes;
    done_ = 0;
    verdict_ = verdict;
  }

  // Without segments: of a message whose sender is another process.
  bool gather(std::span<const work::Segment> segments, std::uint64_t offset,
              std::span<std::byte> out) override;
  bool scatter(std::span<const work::Segment>, std::uint64_t, std::span<const std::byte>) override {
    return true;
  }

  memory::Accessed check(Access, const RemoteRange&, std::size_t) override { return verdict_; }
  memory::Accessed write(const RemoteRange&, std::span<const std::byte>) override { return {}; }
  memory::Accessed read(const RemoteRange&, std::span<std::byte> bytes) override;
  memory::Accessed change(const AtomicAction&, const RemoteRange& range, const std::byte*,
                          std::byte* fetched, memory::Patience) override;
  void release() override {}
  std::span<const RegionKey> to_tell() const override { return {}; }

 private:
  void take(std::span<std::byte> out);

  std::span<const LocalRange> bytes_;
  std::uint64_t done_ = 0;  // bytes of those
  memory::Accessed verdict_;
};

}  // namespace weft::capture
