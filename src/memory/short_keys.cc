// SPDX-License-Identifier: BSD-2-Clause
// Which keys do regions get whose keys have 32 bits?
#include "memory/short_keys.h"

#include <utility>

#include "memory/table_layout.h"
#include "os/runtime_dir.h"

namespace weft::memory {
namespace {

static_assert(kMaxRegions < 1u << ShortKeys::kIndexBits);
constexpr unsigned kVariantBits = 32 - ShortKeys::kIndexBits;
constexpr std::uint32_t kVariantMask = (1u << kVariantBits) - 1;
// A Feistel network of four rounds with a pseudorandom function is a pseudorandom permutation (Luby
// and Rackoff, 1988); more of them, as the halves are small.
constexpr std::uint64_t kRounds = 8;

}  // namespace

ShortKeys::ShortKeys(unsigned index_bits)
    : half_bits_(index_bits / 2),
      cipher_(random_cipher()),
      count_(static_cast<std::uint32_t>(os::random_number())) {}

std::uint32_t ShortKeys::index_of(std::uint32_t count) const {
  const std::uint32_t half_mask = (1u << half_bits_) - 1;
  std::uint32_t left = count >> half_bits_ & half_mask;
  std::uint32_t right = count & half_mask;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const auto mixed = static_cast<std::uint32_t>(cipher_.encrypt(round << 32 | right)) & half_mask;
    left ^= mixed;
    std::swap(left, right);
  }
  return left << half_bits_ | right;
}

RegionKey ShortKeys::take() {
  const unsigned index_bits = 2 * half_bits_;
  const std::uint32_t last = (1u << index_bits) - 1;
  for (;;) {
    const std::uint32_t count = count_++;
    const std::uint32_t index = index_of(count & last);
    const bool reserved = index == 0 || index == last;
    if (reserved || !live_.insert(index).second) continue;
    const std::uint32_t key = index << kVariantBits | (count >> index_bits & kVariantMask);
    return RegionKey{key};
  }
}

void ShortKeys::give_back(RegionKey key) {
  live_.erase(static_cast<std::uint32_t>(key.v) >> kVariantBits);
}

}  // namespace weft::memory
