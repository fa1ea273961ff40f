// SPDX-License-Identifier: BSD-2-Clause
// Where the data lies: the buffers of one process, and how a peer addresses them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "registered_memory.h"

namespace weft::bench {

// What a peer needs for RMA into a Buffers: sent over the control connection.
struct RemoteBuffers {
  std::uint64_t source;  // address or offset, as fi_rma(3) takes it
  std::uint64_t target;
  std::uint64_t key;
};

// COUNT source and COUNT target buffers of SIZE bytes each, in one registered region. Operation
// number i uses buffer i modulo COUNT: with COUNT 1 (as ucx_perftest does) operations in flight
// share one buffer, whose content is not checked then.
class Buffers {
 public:
  Buffers(const Endpoint& endpoint, std::size_t size, std::size_t count);

  std::size_t size() const { return size_; }
  std::byte* source(std::uint64_t index) const { return memory_.begin() + offset(index); }
  std::byte* target(std::uint64_t index) const { return memory_.begin() + half_ + offset(index); }
  std::uint64_t offset(std::uint64_t index) const {
    return count_ == 1 ? 0 : index % count_ * stride_;
  }
  void* descriptor() const { return memory_.descriptor(); }
  RemoteBuffers remote() const;

  // Sets source buffer 0 to a pattern that no other SEED has.
  void fill_source(std::uint8_t seed);
  void clear_target();
  // Whether at PLACE, a target buffer or another one, lies what fill_source(SEED) of the peer made.
  bool holds(const std::byte* place, std::uint8_t seed) const;

 private:
  std::size_t size_;
  std::size_t count_;
  std::size_t stride_;
  std::size_t half_;
  RegisteredMemory memory_;
};

}  // namespace weft::bench
