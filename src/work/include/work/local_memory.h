// SPDX-License-Identifier: BSD-2-Clause
// How does a link reach the buffers of work requests?
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::work {

// A scatter-gather entry (ibv_sge of ibv_post_send(3)).
struct Segment {
  void* base = nullptr;
  std::size_t length = 0;
  std::uint32_t key = 0;  // the local key (lkey); 0: none is needed
};

// The buffers of work requests. They are touched when a packet is written or a response arrives, so
// also at a retransmission: by then the program may have unmapped a buffer, or closed its region.
class LocalMemory {
 public:
  // Copies bytes [offset, offset + out.size()) of `segments` to `out`. False when one of them may
  // not be read: it is not mapped, or its key allows no access.
  [[nodiscard]] virtual bool gather(std::span<const Segment> segments, std::uint64_t offset,
                                    std::span<std::byte> out) = 0;
  // Copies `bytes` into `segments`, from byte `offset` of those on. False when one of them may not
  // be written; some bytes may have been copied then.
  [[nodiscard]] virtual bool scatter(std::span<const Segment> segments, std::uint64_t offset,
                                     std::span<const std::byte> bytes) = 0;

 protected:
  ~LocalMemory() = default;  // not virtual: one of static storage has nothing to destroy at exit
};

}  // namespace weft::work
