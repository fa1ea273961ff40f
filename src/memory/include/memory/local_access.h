// SPDX-License-Identifier: BSD-2-Clause
// How are the local buffers of work requests copied, each under its local key?
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.h"
#include "memory/access_guard.h"
#include "work/local_memory.h"

namespace weft::memory {

// No region has this local key: it stands for an lkey that is never valid.
inline constexpr std::uint32_t kInvalidLocalKey = ~0u;

// A buffer as a guard is asked for it.
inline RemoteRange range_of(const work::Segment& buffer) {
  return {reinterpret_cast<std::uint64_t>(buffer.base), buffer.length, RegionKey{buffer.key}};
}

// As many buffers behind the first `offset` bytes of a list, up to `most` bytes of them, as one
// grant pins.
struct BufferRanges {
  BufferRanges(std::span<const work::Segment> list, std::uint64_t offset, std::uint64_t most);
  std::span<const RemoteRange> ranges() const { return {keys.data(), count}; }

  std::array<RemoteRange, kHazards> keys;
  std::size_t count = 0;
  std::uint64_t length = 0;
};

// The local buffers of one domain. The key of each scatter-gather entry is looked up, and range,
// domain and right are checked, whenever bytes are copied; the region is pinned for that time.
// Entries of key 0 are Weft's own memory (inline data, values of atomic operations).
class LocalAccess final : public work::LocalMemory {
 public:
  // Both guards are of this process's table and outlive it. gather() uses `reader` only, scatter()
  // `writer` only: each by one thread at a time.
  LocalAccess(AccessGuard& reader, AccessGuard& writer, DomainId domain)
      : reader_(reader), writer_(writer), domain_(domain) {}

  bool gather(std::span<const work::Segment> segments, std::uint64_t offset,
              std::span<std::byte> out) override;
  bool scatter(std::span<const work::Segment> segments, std::uint64_t offset,
               std::span<const std::byte> bytes) override;

  // Why the last gather() or scatter() of that kind has failed; kNone: the memory is not mapped.
  AccessError gather_error() const { return gather_error_; }
  AccessError scatter_error() const { return scatter_error_; }

 private:
  AccessGuard& reader_;
  AccessGuard& writer_;
  const DomainId domain_;
  AccessError gather_error_ = AccessError::kNone;
  AccessError scatter_error_ = AccessError::kNone;
};

}  // namespace weft::memory
