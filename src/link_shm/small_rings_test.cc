// SPDX-License-Identifier: BSD-2-Clause
// Do messages and one-sided operations work through rings of another geometry, and does the owner
// believe none that cannot be?
#include <gtest/gtest.h>

#include "link_shm/mailbox.h"
#include "link_shm/outbox.h"
#include "test_support.h"

namespace weft::shm {
namespace {

using namespace testing;
using Bytes = std::vector<std::byte>;
using State = link::Outcome::State;

constexpr Geometry kSmall{16, 16, 16 * 1024};

struct SmallRings : ::testing::TestWithParam<Geometry>, OwnerAndSender {
  void SetUp() override { ASSERT_TRUE(open(GetParam())); }
  bool open(const Geometry& geometry) {
    peer.sender.geometry = geometry;
    return peer.open(kOwner);
  }
  void poll_all() {
    for (int i = 0; i < 20; ++i) box->poll(log);
  }
  // Sends one after the other, has the owner poll when there is no room, and expects each as it was
  // sent.
  void expect_in_order(std::size_t count, std::size_t length) {
    for (std::uint64_t tag = 0; tag < count; ++tag) {
      Bytes bytes = pattern(1 + (length + tag * 7919) % length, tag);
      link::Outcome sent = peer.send(tag, bytes, false, true);
      if (sent.state == State::kAgain) {
        poll_all();
        sent = peer.send(tag, bytes, false, true);
      }
      ASSERT_EQ(sent.state, State::kDone) << tag;
    }
    poll_all();
    ASSERT_EQ(log.messages.size(), count);
    for (std::uint64_t tag = 0; tag < count; ++tag) {
      ASSERT_EQ(log.messages[tag].arrival.tag, tag);
      ASSERT_TRUE(log.messages[tag].bytes == pattern(1 + (length + tag * 7919) % length, tag));
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Geometries, SmallRings,
                         ::testing::Values(kSmall, Geometry{4, 1, 4096}, Geometry{64, 128, 32768},
                                           kConnectionGeometry, kMessageGeometry));

TEST_P(SmallRings, TheSlotStatesTheGeometryThatItsSenderChose) {
  EXPECT_EQ(SlotView(dir.path(), kOwner, 0).header().geometry, GetParam());
}

TEST_P(SmallRings, InlineMessagesArriveInOrderThroughManyLaps) {
  expect_in_order(20 * GetParam().cells, kInlineBytes);
}

TEST_P(SmallRings, PayloadsInTheBulkRingArriveInOrderThroughManyLaps) {
  expect_in_order(200, GetParam().max_eager());
}

TEST_P(SmallRings, AFullRingOfCellsSaysAgainUntilTheOwnerHasRead) {
  box->poll(log);
  Bytes none;
  for (std::uint32_t i = 0; i < GetParam().cells; ++i) {
    ASSERT_EQ(peer.send(i, none).state, State::kDone) << i;
  }
  EXPECT_EQ(peer.send(99, none).state, State::kAgain);
  poll_all();
  EXPECT_EQ(peer.send(99, none).state, State::kDone);
}

TEST_P(SmallRings, AFullBulkRingSaysAgainUntilTheOwnerHasRead) {
  box->poll(log);
  Bytes bytes = pattern(GetParam().max_eager(), 1);
  std::uint64_t sent = 0;
  while (sent < GetParam().cells && peer.send(sent, bytes, false, true).state == State::kDone) {
    ++sent;
  }
  EXPECT_EQ(sent, std::min(GetParam().cells, 8u));
  box->poll(log);
  EXPECT_EQ(peer.send(99, bytes, false, true).state, State::kDone);
}

TEST_P(SmallRings, MessagesBeyondTheEagerLengthAreCopiedByBothSides) {
  for (std::uint64_t tag = 1; tag <= 3; ++tag) {
    Bytes bytes = pattern(GetParam().max_eager() + 1 + (tag << 19), tag);
    ASSERT_EQ(peer.send(tag, bytes).state, State::kPending);
    for (int i = 0; i < 100 && flow.finished.count(tag) == 0; ++i) {
      box->poll(log);
      peer.box->progress(flow);
    }
    ASSERT_EQ(flow.finished.count(tag), 1u);
    EXPECT_EQ(flow.finished[tag], 0);
    EXPECT_TRUE(log.messages.back().bytes == bytes);
  }
}

TEST_P(SmallRings, SendsBeyondTheRendezvousWaitForOneInOrder) {
  box->poll(log);
  const std::uint64_t count = 3ull * GetParam().rendezvous_records + 5;
  Bytes bytes = pattern(100, 1);
  std::uint64_t sent = 0;
  for (int round = 0; round < 100'000 && flow.finished.size() < count; ++round) {
    while (sent < count && peer.send(sent, bytes, true).state == State::kPending) ++sent;
    box->poll(log);
    peer.box->progress(flow);
  }
  ASSERT_EQ(flow.finished.size(), count);
  ASSERT_EQ(log.messages.size(), count);
  for (std::uint64_t i = 0; i < count; ++i) {
    ASSERT_EQ(log.messages[i].arrival.tag, i);
    ASSERT_EQ(flow.finished[i], 0);
  }
}

TEST_P(SmallRings, ASlotServesTheNextSenderWithItsGeometry) {
  expect_in_order(GetParam().cells, kInlineBytes);
  peer.box.reset();
  box->poll(log);
  log.messages.clear();
  ASSERT_TRUE(open(GetParam() == kSmall ? kMessageGeometry : kSmall));
  EXPECT_EQ(log.closed.size(), 1u);
  expect_in_order(3 * kCells, kInlineBytes);
}

TEST(SmallRingsOfLiars, AGeometryThatCannotBeShutsItsSenderOutAndNoOther) {
  OwnerAndSender one;
  Peer other(one.dir.path(), kSender + 1);
  ASSERT_TRUE(one.peer.open(kOwner) && other.open(kOwner));
  const SlotView slot(one.dir.path(), kOwner, 0);
  slot.header().geometry = {1u << 30, 16, 16384};
  Bytes bytes = pattern(5, 5);
  ASSERT_EQ(other.send(3, bytes).state, State::kDone);
  one.box->poll(one.log);
  EXPECT_EQ(one.log.closed, (std::vector<InboxLog::Closed>{{0, true}}));
  EXPECT_EQ(one.peer.send(2, bytes).state, State::kFailed);
  ASSERT_EQ(one.log.messages.size(), 1u);
  EXPECT_EQ(one.log.messages[0].arrival.tag, 3u);
}

TEST(SmallRingsOfLiars, AGeometryThatChangesAfterTheFirstLookHasNoEffect) {
  OwnerAndSender one;
  one.peer.sender.geometry = kSmall;
  ASSERT_TRUE(one.peer.open(kOwner));
  one.box->poll(one.log);
  SlotView(one.dir.path(), kOwner, 0).header().geometry = {1u << 30, 1u << 30, 1u << 30};
  for (std::uint64_t tag = 0; tag < 100; ++tag) {
    Bytes bytes = pattern(1000, tag);
    ASSERT_EQ(one.peer.send(tag, bytes).state, State::kDone);
    one.box->poll(one.log);
    ASSERT_EQ(one.log.messages.size(), tag + 1);
    EXPECT_TRUE(one.log.messages.back().bytes == bytes);
  }
}

}  // namespace
}  // namespace weft::shm
