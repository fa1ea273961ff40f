// SPDX-License-Identifier: BSD-2-Clause
// Which keys do regions get whose keys have 32 bits? (lkey and rkey of ibv_reg_mr(3))
#pragma once

#include <cstdint>
#include <unordered_set>

#include "base/types.h"
#include "memory/key_sequence.h"

namespace weft::memory {

// Keys of 24 index bits and 8 variant bits below them, as ibv_inc_rkey(3) expects. The indexes come
// in an order that known keys do not reveal; one returns only after all others that are free, and
// with another variant. Never 0 or 2^32 - 1. Used by one thread at a time.
class ShortKeys {
 public:
  static constexpr unsigned kIndexBits = 24;

  // With fewer index bits, an even number, in tests.
  explicit ShortKeys(unsigned index_bits = kIndexBits);
  // A key whose index no live key has. There are more indexes than regions (kMaxRegions).
  RegionKey take();
  // A key that take() returned is not live any more.
  void give_back(RegionKey key);

 private:
  std::uint32_t index_of(std::uint32_t count) const;

  const unsigned half_bits_;  // of the index
  KeyCipher cipher_;
  std::uint32_t count_ = 0;  // of indexes that were looked at; the upper 8 bits are the variant
  std::unordered_set<std::uint32_t> live_;  // indexes
};

}  // namespace weft::memory
