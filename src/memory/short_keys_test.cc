// SPDX-License-Identifier: BSD-2-Clause
// Is a key of 32 bits unpredictable, and does it come back late?
#include "memory/short_keys.h"

#include <gtest/gtest.h>

#include <unordered_set>
#include <vector>

namespace weft::memory {
namespace {

constexpr unsigned kFewBits = 12;
constexpr std::uint32_t kIndexes = 1u << kFewBits;

std::uint32_t index_of(RegionKey key) { return static_cast<std::uint32_t>(key.v) >> 8; }

TEST(ShortKeys, AKeyHas32BitsAndIsNeitherZeroNorAllOnes) {
  ShortKeys keys(kFewBits);
  for (int i = 0; i < 1000; ++i) {
    const RegionKey key = keys.take();
    EXPECT_EQ(key.v >> 32, 0u);
    EXPECT_NE(index_of(key), 0u);
    EXPECT_NE(index_of(key), kIndexes - 1);
  }
}

TEST(ShortKeys, AnIndexReturnsOnlyAfterAllOthersAndWithAnotherVariant) {
  ShortKeys keys(kFewBits);
  const RegionKey first = keys.take();
  keys.give_back(first);
  std::vector<bool> seen(kIndexes);
  for (std::uint32_t i = 0; i < kIndexes - 3; ++i) {
    const RegionKey key = keys.take();
    ASSERT_FALSE(seen[index_of(key)]) << "key number " << i;
    seen[index_of(key)] = true;
    keys.give_back(key);
  }
  EXPECT_FALSE(seen[index_of(first)]);
  const RegionKey again = keys.take();
  EXPECT_EQ(index_of(again), index_of(first));
  EXPECT_NE(again, first);
}

TEST(ShortKeys, NoIndexOfALiveKeyIsGivenAgain) {
  ShortKeys keys(kFewBits);
  const RegionKey live = keys.take();
  for (std::uint32_t i = 0; i < kIndexes; ++i) {
    const RegionKey key = keys.take();
    ASSERT_NE(index_of(key), index_of(live));
    keys.give_back(key);
  }
}

TEST(ShortKeys, KeysOfOneSequenceDoNotRevealTheNext) {
  ShortKeys keys;
  std::unordered_set<std::uint32_t> distances;
  std::uint32_t last = index_of(keys.take());
  for (int i = 0; i < 1000; ++i) {
    const std::uint32_t index = index_of(keys.take());
    distances.insert(index - last);
    last = index;
  }
  EXPECT_GT(distances.size(), 990u);
}

}  // namespace
}  // namespace weft::memory
