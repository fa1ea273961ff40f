// SPDX-License-Identifier: BSD-2-Clause
// Can a sender withdraw what it has offered, and does the receiver hear of that?
#include <gtest/gtest.h>

#include "test_support.h"

namespace weft::shm {
namespace {

using namespace testing;
using Bytes = std::vector<std::byte>;
using State = link::Outcome::State;

struct Withdrawal : ::testing::Test, OwnerAndSender {
  Bytes bytes = pattern(20'000, 1);

  void SetUp() override {
    log.accepts = false;
    ASSERT_TRUE(peer.open(kOwner));
    box->poll(log);
  }
  void TearDown() override { peer.box.reset(); }
  bool cancel(std::uint64_t tag) { return peer.box->cancel(reinterpret_cast<void*>(tag), flow); }
  void go_on() {
    box->poll(log);
    peer.box->progress(flow);
  }
};

TEST_F(Withdrawal, OfAnOfferIsReportedOnBothSides) {
  ASSERT_EQ(peer.send(1, bytes).state, State::kPending);
  box->poll(log);
  ASSERT_EQ(log.messages.size(), 1u);
  EXPECT_TRUE(cancel(1));
  EXPECT_EQ(flow.finished.at(1), ECANCELED);
  EXPECT_FALSE(cancel(1));
  EXPECT_FALSE(box->accept(log, log.messages[0].arrival.offer, {}, 0, nullptr));
  EXPECT_TRUE(log.withdrawn_ones.empty());
  go_on();
  EXPECT_EQ(log.withdrawn_ones, std::vector{log.messages[0].arrival.offer.rendezvous_id});
  EXPECT_FALSE(peer.box->busy());
}

TEST_F(Withdrawal, OfWhatWasAcceptedOrCopiedIsRefused) {
  ASSERT_EQ(peer.send(1, bytes).state, State::kPending);
  Bytes small = pattern(100, 2);
  ASSERT_EQ(peer.send(2, small, true).state, State::kPending);
  log.acknowledges = false;
  box->poll(log);
  log.accept(log.messages.at(0));
  EXPECT_FALSE(cancel(1));
  EXPECT_FALSE(cancel(2)) << "its bytes are there";
  box->acknowledge(log.messages.at(1).arrival.offer);
  go_on();
  go_on();
  EXPECT_EQ(flow.finished, (std::map<std::uint64_t, int>{{1, 0}, {2, 0}}));
  EXPECT_EQ(log.messages[0].bytes, bytes);
}

// Its rendezvous is not used again before the receiver has heard: a late accept() would take
// another message for it.
TEST_F(Withdrawal, KeepsItsRendezvousUntilTheReceiverHasHeard) {
  ASSERT_EQ(peer.send(1, bytes).state, State::kPending);
  box->poll(log);
  const link::Offer offer = log.messages.at(0).arrival.offer;
  EXPECT_TRUE(cancel(1));
  for (std::uint64_t i = 2; i < 2 + 2 * kRendezvousBlock; ++i) {
    ASSERT_EQ(peer.send(i, bytes).state, State::kPending);
  }
  EXPECT_FALSE(box->accept(log, offer, {}, 0, nullptr));
  go_on();
  go_on();
  for (std::size_t i = 1; i < log.messages.size(); ++i) {
    EXPECT_NE(log.messages[i].arrival.offer.rendezvous_id, offer.rendezvous_id);
  }
}

TEST_F(Withdrawal, MayBeRepeatedWithoutEnd) {
  for (std::uint64_t i = 0; i < 3 * std::uint64_t{kRendezvousCount}; ++i) {
    ASSERT_EQ(peer.send(i, bytes).state, State::kPending) << i;
    ASSERT_TRUE(cancel(i)) << i;
    ASSERT_EQ(flow.finished.at(i), ECANCELED);
    if (i % 32 == 31) go_on();
  }
  go_on();
  EXPECT_FALSE(peer.box->busy());
}

// A full ring has no room to tell: that follows.
TEST_F(Withdrawal, IsToldWhenThereIsRoom) {
  std::uint64_t sent = 0;
  while (peer.send(sent, bytes).state == State::kPending) ++sent;
  ASSERT_GE(sent, std::uint64_t{kCells});
  EXPECT_TRUE(cancel(5));
  box->poll(log);
  EXPECT_TRUE(log.withdrawn_ones.empty());
  for (unsigned i = 0; i < 20; ++i) go_on();
  EXPECT_EQ(log.withdrawn_ones.size(), 1u);
  EXPECT_EQ(flow.finished, (std::map<std::uint64_t, int>{{5, ECANCELED}}));
}

TEST_F(Withdrawal, OfWhatWaitsForARendezvousLeavesTheOthersInTheirOrder) {
  for (std::uint64_t i = 0; i < kRendezvousCount + 6; ++i) {
    while (peer.send(i, bytes).state == State::kAgain) box->poll(log);
  }
  EXPECT_TRUE(cancel(kRendezvousCount + 2));
  EXPECT_TRUE(cancel(kRendezvousCount + 5));
  log.accepts = true;
  for (auto& message : log.messages) log.accept(message);
  for (unsigned i = 0; i < 200; ++i) go_on();
  ASSERT_EQ(log.messages.size(), kRendezvousCount + 4);
  for (std::uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(log.messages[kRendezvousCount + i].arrival.tag,
              kRendezvousCount + i + (i >= 2 ? 1 : 0));
  }
  EXPECT_EQ(flow.finished.size(), kRendezvousCount + 6);
  EXPECT_FALSE(peer.box->busy());
}

TEST_F(Withdrawal, OfARendezvousThatWasNotWithdrawnIsNonsense) {
  ASSERT_EQ(peer.send(1, bytes).state, State::kPending);
  box->poll(log);
  const SlotView slot(dir.path(), kOwner, 0);
  slot.cell(1).offered = {0, log.messages.at(0).arrival.offer.rendezvous_id, 0};
  slot.cell(1).word =
      CellWord{1, link::MessageOperation::kMessage, CellKind::kWithdrawn, 0, 0}.pack();
  box->poll(log);
  EXPECT_EQ(log.closed, (std::vector<InboxLog::Closed>{{0, true}}));
}

}  // namespace
}  // namespace weft::shm
