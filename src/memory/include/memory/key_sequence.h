// SPDX-License-Identifier: BSD-2-Clause
// Which keys do regions get whose keys the provider chooses?
#pragma once

#include <array>
#include <cstdint>

#include "base/types.h"

namespace weft::memory {

// The block cipher Speck64/128 (Beaulieu et al., "The SIMON and SPECK Families of Lightweight Block
// Ciphers", 2013): for one secret a permutation of the 64-bit numbers.
class KeyCipher {
 public:
  // The words of the secret as the paper numbers them, K[0] first.
  explicit KeyCipher(const std::array<std::uint32_t, 4>& secret);
  std::uint64_t encrypt(std::uint64_t block) const;

 private:
  static constexpr int kRounds = 27;
  std::array<std::uint32_t, kRounds> round_keys_;
};

// One with a random secret.
KeyCipher random_cipher();

// The next key of this process: a count, encrypted with a random secret of 128 bits. No key comes
// twice in the life of the process, and known keys do not reveal others. Never 0 or 2^64 - 1. A
// forked child draws a secret of its own. Any thread.
RegionKey next_provider_key();

}  // namespace weft::memory
