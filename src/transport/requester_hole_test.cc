// SPDX-License-Identifier: BSD-2-Clause
// When does a requester suspect that large packets vanish on their way?
#include <gtest/gtest.h>

#include "test_flow.h"

namespace weft::transport::testing {
namespace {

using work::WorkKind;

using std::chrono::milliseconds;

constexpr std::size_t kLarge = 3000;
constexpr int kTries = 8;

Settings wide() {
  Settings settings = selective();
  settings.path_mtu = 4096;
  settings.retries = 1000;
  return settings;
}

// Nothing is heard in time, and it is tried again.
void in_vain(Sender& sender) {
  sender.wait();
  sender.packets();
}

TEST(Hole, IsSuspectedWhenALargePacketVanishesAgainAndAgainWhileThePeerIsHeard) {
  Sender sender(wide());
  sender.post(WorkKind::kSend, kLarge);
  sender.packets();
  for (int i = 0; i < kTries; ++i) {
    EXPECT_FALSE(sender.requester.pmtu_black_hole()) << i;
    sender.requester.note_received();
    in_vain(sender);
    EXPECT_EQ(sender.requester.pmtu_probing(), i > 0) << "a dead peer would go unnoticed";
  }
  EXPECT_TRUE(sender.requester.pmtu_black_hole());
  sender.acknowledge(0);
  EXPECT_FALSE(sender.requester.pmtu_black_hole());
  EXPECT_FALSE(sender.requester.pmtu_probing());
  EXPECT_EQ(sender.ended_now(), "0 ok");
}

TEST(Hole, IsNotSuspectedWithoutAnswersOfThePeer) {
  Sender sender(wide());
  sender.post(WorkKind::kSend, kLarge);
  sender.packets();
  for (int i = 0; i < 10 * kTries; ++i) in_vain(sender);
  EXPECT_FALSE(sender.requester.pmtu_black_hole());
  EXPECT_TRUE(sender.requester.pmtu_probing());
}

TEST(Hole, IsNotWhatASmallPacketFallsInto) {
  Sender sender(wide());
  sender.post(WorkKind::kSend, kSurePathMtu);
  sender.post(WorkKind::kSend, kLarge);
  sender.packets();
  for (int i = 0; i < 10 * kTries; ++i) {
    sender.requester.note_received();
    in_vain(sender);
    EXPECT_FALSE(sender.requester.pmtu_probing());
  }
  EXPECT_FALSE(sender.requester.pmtu_black_hole());
}

// A queue was full.
TEST(Hole, IsNotSuspectedForLossesOfOneMoment) {
  Sender sender(wide());
  sender.post(WorkKind::kSend, 4 * kLarge);
  sender.packets();
  for (int i = 0; i < 10 * kTries; ++i) {
    sender.pass(std::chrono::microseconds(100));
    sender.nak(Nak::kSequence, 0, 1);
    EXPECT_EQ(sender.packets().size(), 1U);
  }
  EXPECT_FALSE(sender.requester.pmtu_black_hole());
}

TEST(Hole, IsNotWhereLargePacketsGetThroughAtLast) {
  Sender sender(wide());
  sender.post(WorkKind::kSend, 40 * 4096);
  sender.packets();
  for (int number = 0; number < 10; ++number) {
    for (int i = 0; i + 1 < kTries; ++i) {
      sender.requester.note_received();
      in_vain(sender);
    }
    EXPECT_FALSE(sender.requester.pmtu_black_hole()) << number;
    sender.acknowledge(number);
  }
}

// A receiver that is not ready has got it.
TEST(Hole, IsNotWhereTheReceiverIsNotReady) {
  Sender sender(wide());
  sender.post(WorkKind::kSend, kLarge);
  sender.packets();
  for (int i = 0; i < 10 * kTries; ++i) {
    sender.acknowledge(0, kSyndromeRnr | 31);
    sender.wait();
    EXPECT_EQ(sender.packets().size(), 1U);
  }
  EXPECT_FALSE(sender.requester.pmtu_black_hole());
}

// Others go on behind it, and are acknowledged.
TEST(Hole, IsSuspectedWhenAnAnswerVanishesThoughOthersCome) {
  Sender sender(wide());
  sender.post(WorkKind::kRead, kLarge);
  sender.packets();
  int tries = 0;
  for (int i = 1; !sender.requester.pmtu_black_hole() && tries < 3 * kTries; ++i, ++tries) {
    sender.post(WorkKind::kSend, 10);
    sender.packets();
    sender.pass(milliseconds(30));
    sender.acknowledge(i);
    sender.packets();
  }
  EXPECT_TRUE(sender.requester.pmtu_black_hole());
  EXPECT_GE(tries, kTries);
  sender.answer(Operation::kReadResponseOnly, 0, kLarge);
  EXPECT_FALSE(sender.requester.pmtu_black_hole());
}

TEST(Hole, IsNotSuspectedForASmallAnswer) {
  Sender sender(wide());
  sender.post(WorkKind::kRead, 4096 + 10);
  sender.packets();
  sender.answer(Operation::kReadResponseFirst, 0, 4096);
  for (int i = 0; i < 10 * kTries; ++i) {
    sender.requester.note_received();
    in_vain(sender);
  }
  EXPECT_FALSE(sender.requester.pmtu_black_hole());
}

}  // namespace
}  // namespace weft::transport::testing
