// SPDX-License-Identifier: BSD-2-Clause
// Do the words of a mailbox mean the same to both sides, and do its parts keep apart?
#include "link_shm/layout.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace weft::shm {
namespace {

TEST(Layout, AFirstWordSurvivesPackingForEveryKindAndOperation) {
  for (const auto kind : {CellKind::kInline, CellKind::kBulk, CellKind::kOffered,
                          CellKind::kAssisted, CellKind::kAtomicAssisted, CellKind::kRefused}) {
    for (int operation = 1; operation <= 7; ++operation) {
      for (const std::uint32_t lap : {1u, 2u, 0x80000000u, 0xffffffffu}) {
        const CellWord word{lap, static_cast<link::MessageOperation>(operation), kind,
                            kHasData | kWantsAck, kInlineBytes};
        const CellWord back = CellWord::unpack(word.pack());
        EXPECT_EQ(back.lap, lap);
        EXPECT_EQ(back.operation, word.operation);
        EXPECT_EQ(back.kind, kind);
        EXPECT_EQ(back.flags, word.flags);
        EXPECT_EQ(back.inline_length, word.inline_length);
      }
    }
  }
}

// Padding of what is written as a whole would be whatever lay on the sender's stack.
TEST(Layout, WhatIsWrittenAsAWholeHasNoPadding) {
  EXPECT_TRUE(std::has_unique_object_representations_v<BulkPayload>);
  EXPECT_TRUE(std::has_unique_object_representations_v<OfferedPayload>);
  EXPECT_TRUE(std::has_unique_object_representations_v<RefusedPayload>);
  EXPECT_TRUE(std::has_unique_object_representations_v<Geometry>);
  EXPECT_TRUE(std::has_unique_object_representations_v<Probe>);
  EXPECT_TRUE(std::has_unique_object_representations_v<os::WakerName>);
}

TEST(Layout, SlotsFollowTheHeaderAndEachOtherUpToTheLast) {
  EXPECT_GE(slot_at(0), sizeof(MailboxHeader));
  for (std::uint32_t slot = 1; slot < kSlots; ++slot) {
    ASSERT_EQ(slot_at(slot), slot_at(slot - 1) + kSlotBytes);
  }
}

TEST(Layout, WordsOfDifferentWritersShareNoCacheLine) {
  const SlotHeader header{};
  const auto line = [&](const void* member) {
    return (static_cast<const char*>(member) - reinterpret_cast<const char*>(&header)) /
           static_cast<std::ptrdiff_t>(kCacheLine);
  };
  EXPECT_NE(line(&header.sender_asleep), line(&header.cells_consumed));
  EXPECT_NE(line(&header.cells_consumed), line(&header.attention));
}

}  // namespace
}  // namespace weft::shm
