// SPDX-License-Identifier: BSD-2-Clause
// Are provider keys all different, and does none of them reveal another?
#include "memory/key_sequence.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <set>

namespace weft::memory {
namespace {

// The test vector of the paper.
TEST(KeySequence, TheCipherIsTheOneThatItIsNamedFor) {
  const KeyCipher cipher({0x03020100, 0x0b0a0908, 0x13121110, 0x1b1a1918});
  EXPECT_EQ(cipher.encrypt(0x3b726574'7475432d), 0x8c6fa548'454e028bU);
}

TEST(KeySequence, NoKeyComesTwice) {
  constexpr std::size_t kKeys = 200'000;
  std::set<RegionKey> seen;
  for (std::size_t i = 0; i < kKeys; ++i) seen.insert(next_provider_key());
  EXPECT_EQ(seen.size(), kKeys);
}

// Two keys in a row differ in 32 bits, give or take; 1000 of them in 32,000, where a deviation of
// 1000 is more than eight times the standard deviation.
TEST(KeySequence, KeysInARowHaveNothingInCommon) {
  int changed = 0;
  RegionKey before = next_provider_key();
  for (int i = 0; i < 1000; ++i) {
    const RegionKey key = next_provider_key();
    changed += std::popcount(key.v ^ before.v);
    before = key;
  }
  EXPECT_NEAR(changed, 32'000, 1000);
}

TEST(KeySequence, AForkedChildHasKeysOfItsOwn) {
  next_provider_key();
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const RegionKey key = next_provider_key();
    ::_exit(::write(ends[1], &key, sizeof key) == sizeof key ? 0 : 1);
  }
  RegionKey of_child;
  ASSERT_EQ(::read(ends[0], &of_child, sizeof of_child), static_cast<ssize_t>(sizeof of_child));
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_NE(of_child, next_provider_key());
}

}  // namespace
}  // namespace weft::memory
