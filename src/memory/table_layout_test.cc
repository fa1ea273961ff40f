// SPDX-License-Identifier: BSD-2-Clause
// Do the parts of the shared table lie apart, and do keys and pages spread over them?
#include "memory/table_layout.h"

#include <gtest/gtest.h>

#include <set>

#include "memory/stripe_table.h"

namespace weft::memory {
namespace {

constexpr std::uint64_t kBankBytes = std::uint64_t{4} << kMaxIndexBits;

TEST(TableLayout, PartsFollowEachOtherWithoutOverlap) {
  EXPECT_LE(sizeof(TableHeader), kUsersAt);
  EXPECT_EQ(kUsersAt + kMaxUsers * sizeof(UserRecord), kIndexAt);
  EXPECT_EQ(kIndexAt + 2 * kBankBytes, kSlotsAt);
  EXPECT_EQ(kSlotsAt + kMaxRegions * sizeof(RegionSlot), kTableSize);
}

TEST(TableLayout, TheLargestIndexHasRoomForEveryRegion) {
  EXPECT_LE(4 * (std::uint64_t{kMaxRegions} + 1), 3 * (std::uint64_t{1} << kMaxIndexBits));
}

TEST(TableLayout, NoSlotNumberIsMistakenForATombstone) { EXPECT_LT(kMaxRegions, kTombstone); }

TEST(IndexWord, PackingKeepsGenerationAndSize) {
  for (const std::uint32_t generation : {0U, 1U, 0xfffffeU, 0xffffffU}) {
    const IndexWord back = IndexWord::unpack(IndexWord{generation, 17}.pack());
    EXPECT_EQ(back.generation, generation);
    EXPECT_EQ(back.bits, 17U);
  }
}

TEST(IndexWord, TheNextIndexLiesInTheOtherBank) {
  IndexWord word{0xfffffe, 12};
  for (int i = 0; i < 4; ++i) {  // across the end of the generations
    const IndexWord next = word.next(13);
    EXPECT_NE(next.at(), word.at());
    EXPECT_NE(next.pack(), word.pack());
    EXPECT_EQ(next.bits, 13U);
    word = IndexWord::unpack(next.pack());
  }
}

TEST(IndexWord, NoValidWordReachesOutOfItsBank) {
  for (std::uint32_t bits = 0; bits < 256; ++bits) {
    for (const std::uint32_t generation : {0U, 1U}) {
      const IndexWord word = IndexWord::unpack(generation << 8 | bits);
      EXPECT_EQ(word.valid(), bits >= kFirstIndexBits && bits <= kMaxIndexBits) << bits;
      if (!word.valid()) continue;
      EXPECT_GE(word.at(), kIndexAt + generation * kBankBytes);
      EXPECT_LE(word.at() + 4 * word.entries(), kIndexAt + (generation + 1) * kBankBytes);
    }
  }
}

TEST(StripeWord, PackingKeepsUserTurnAndNonce) {
  for (const std::uint32_t user : {0U, 1U, kMaxStripeUsers - 1}) {
    const StripeWord back = StripeWord::unpack(StripeWord{user, 0x3ffff, 0xffffffff}.pack());
    EXPECT_EQ(back.user, user);
    EXPECT_EQ(back.turn, 0x3ffffU);
    EXPECT_EQ(back.nonce, 0xffffffffU);
    EXPECT_TRUE(back.valid());
  }
}

TEST(StripeWord, NoHolderLooksLikeNone) {
  EXPECT_NE((StripeWord{0, 0, 0}.pack()), 0U);
  EXPECT_FALSE(StripeWord::unpack(0).valid());
}

TEST(StripeWord, NeighbouringPagesHaveStripesOfTheirOwn) {
  EXPECT_NE(stripe_of(0), stripe_of(1));
  EXPECT_NE(stripe_of(kStripes - 1), stripe_of(kStripes));
  EXPECT_LT(stripe_of(~std::uint64_t{0}), kStripes);
}

// How many of 2048 places 1024 keys of a kind begin their search at.
template <class Key>
std::size_t places(Key key) {
  std::set<std::uint64_t> found;
  for (std::uint64_t i = 0; i < 1024; ++i) found.insert(key(i) & 2047);
  return found.size();
}

TEST(HashKey, KeysOfEveryUsualPatternSpread) {
  // Random places would be about 805; a pattern that piles up would make every search long.
  for (const unsigned shift : {0U, 3U, 6U, 12U, 16U, 21U, 32U, 40U}) {
    EXPECT_GT(places([&](std::uint64_t i) { return hash_key({1}, {i << shift}); }), 500U) << shift;
  }
  EXPECT_GT(places([](std::uint64_t i) { return hash_key({static_cast<std::uint32_t>(i)}, {42}); }),
            500U);
}

}  // namespace
}  // namespace weft::memory
