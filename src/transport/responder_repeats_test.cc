// SPDX-License-Identifier: BSD-2-Clause
// What is done with a request whose turn is not yet, or was before?
#include <gtest/gtest.h>

#include "test_flow.h"

namespace weft::transport::testing {
namespace {

using std::chrono::milliseconds;

TEST(EarlyRequest, IsReportedOnceToAForeignPeer) {
  Receiver receiver(connection());
  receiver.take(Operation::kSendOnly, 0, 10);
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 2, 10), "nak60 1 #1");
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 3, 10), "");
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 5, 10), "");
  EXPECT_EQ(receiver.stats.of(Stat::kOutOfSequence), 3U);
  receiver.take(Operation::kSendOnly, 1, 10);
  EXPECT_EQ(receiver.memory.messages.size(), 2U) << "nothing was kept";
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 4, 10), "nak60 2 #2") << "another gap";
}

TEST(EarlyRequest, IsKeptForWeftWhichHearsOfEachMissingOne) {
  Receiver receiver(selective());
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 3, 13), "nak60 0 #3");
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 4, 14), "");
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 6, 16), "nak60 5 #1");
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 1, 11), "");
  EXPECT_EQ(receiver.stats.of(Stat::kOutOfOrderKept), 4U);
  EXPECT_TRUE(receiver.memory.messages.empty());
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 0, 10), "ack 1 #2");
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 2, 12), "ack 4 #5");
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 5, 15), "ack 6 #7");
  for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(receiver.memory.messages[i].size(), 10 + i);
}

TEST(EarlyRequest, TakesTheNumbersOfItsAnswers) {
  Receiver receiver(selective());
  EXPECT_EQ(receiver.hears(receiver.read(1, 3 * kMtu)), "nak60 0 #1");
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 4, 10), "") << "nothing is missing between them";
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 0, 10),
            "first 1 #2 [256], middle 2 [256], last 3 #2 [256], ack 4 #3");
}

TEST(EarlyRequest, IsKeptOnce) {
  Receiver receiver(selective());
  receiver.take(Operation::kSendOnly, 1, 10);
  receiver.take(Operation::kSendOnly, 1, 20);
  EXPECT_EQ(receiver.stats.of(Stat::kOutOfOrderKept), 1U);
  EXPECT_EQ(receiver.stats.of(Stat::kDuplicateRequests), 1U);
  receiver.take(Operation::kSendOnly, 0, 5);
  receiver.take(Operation::kSendOnly, 1, 10);
  ASSERT_EQ(receiver.memory.messages.size(), 2U);
  EXPECT_EQ(receiver.memory.messages[1].size(), 10U);
}

// The one that is named may have come before it is told of.
TEST(EarlyRequest, IsNotMissedWhenItCameMeanwhile) {
  Receiver receiver(selective());
  receiver.take(Operation::kSendOnly, 4, 10);
  receiver.take(Operation::kSendOnly, 1, 10);
  receiver.take(Operation::kSendOnly, 3, 10);
  EXPECT_EQ(receiver.says(), "nak60 0 #1, nak60 2 #1");
  receiver.take(Operation::kSendOnly, 6, 10);
  receiver.take(Operation::kSendOnly, 5, 10);
  EXPECT_FALSE(receiver.responder.ready());
}

// Then the peer knows what is still in flight.
TEST(EarlyRequest, ThatWantsAnAnswerIsToldHowFarAllIsKnown) {
  Receiver receiver(selective());
  wire::Packet asks = receiver.request(Operation::kSendOnly, 7, 10);
  asks.ack_request = true;
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 2, 10), "nak60 0 #2");
  EXPECT_EQ(receiver.hears(asks), "nak60 3 #4, nak60 7 #0");
  EXPECT_EQ(receiver.hears(asks), "nak60 7 #0") << "it was lost, or the peer asks again";
  for (const int number : {0, 1, 3, 4, 5}) receiver.take(Operation::kSendOnly, number, 10);
  receiver.answers();
  receiver.take(asks);
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 6, 10), "ack 7 #8")
      << "nothing is missing any more";
}

TEST(EarlyRequest, IsKeptWithinAWindowOnly) {
  Receiver receiver(selective());
  constexpr int kFar = static_cast<int>(kMaxHeld);
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, kFar, 10), "");
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, kFar - 1, 10), "nak60 0 #1023");
  EXPECT_EQ(receiver.stats.of(Stat::kOutOfOrderKept), 1U);
  EXPECT_EQ(receiver.stats.of(Stat::kOutOfSequence), 1U);
}

TEST(EarlyRequest, IsAskedForOnceMoreAfterTheTimeThatThatTakes) {
  Receiver receiver(selective());
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 2, 10), "nak60 0 #2");
  receiver.pass(milliseconds(1));
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 3, 10), "");
  receiver.pass(milliseconds(2));
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 4, 10), "nak60 0 #2");
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 5, 10), "");
  receiver.pass(milliseconds(60));
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 0, 10), "nak60 1 #1");
}

// How long it takes from asking to getting is measured.
TEST(EarlyRequest, IsAskedForSoonerWhereThatTakesLess) {
  Receiver receiver(selective());
  int number = 0;
  for (int i = 0; i < 100; ++i, number += 2) {
    receiver.take(Operation::kSendOnly, number + 1, 10);
    receiver.pass(std::chrono::microseconds(30));
    receiver.take(Operation::kSendOnly, number, 10);
  }
  receiver.take(Operation::kSendOnly, number + 1, 10);
  receiver.answers();
  receiver.pass(std::chrono::microseconds(100));
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, number + 2, 10),
            "nak60 " + std::to_string(number) + " #1");
}

TEST(EarlyRequest, IsRefusedWhenItsTurnHasCome) {
  Receiver receiver(selective());
  receiver.take(Operation::kSendLast, 1, 10);
  receiver.take(Operation::kSendOnly, 2, 10);
  EXPECT_EQ(receiver.says(), "nak60 0 #1");
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 0, 10), "nak61 1 #1");
  EXPECT_EQ(receiver.memory.messages.size(), 1U);
}

TEST(RepeatedRequest, IsAcknowledgedAndNotCarriedOut) {
  for (const bool weft : {false, true}) {
    Receiver receiver(weft ? selective() : connection());
    for (int i = 0; i < 3; ++i) receiver.take(Operation::kSendOnly, i, 10);
    receiver.take(Operation::kWriteOnly, 3, 10);
    EXPECT_EQ(receiver.says(), "");
    EXPECT_EQ(receiver.hears(Operation::kSendOnly, 1, 10), "ack 3 #4");
    EXPECT_EQ(receiver.hears(Operation::kWriteOnly, 3, 10), "ack 3 #4");
    EXPECT_EQ(receiver.hears(Operation::kSendOnly, -5000, 10), "ack 3 #4");
    EXPECT_EQ(receiver.stats.of(Stat::kDuplicateRequests), 3U);
    EXPECT_EQ(receiver.memory.messages.size(), 3U);
    EXPECT_EQ(receiver.memory.writes_of.size(), 1U);
  }
}

TEST(RepeatedRead, IsAnsweredFromMemoryAsItIsNow) {
  Receiver receiver(connection());
  receiver.take(receiver.read(0, 300));
  receiver.take(Operation::kSendOnly, 2, 10);
  receiver.answers();
  receiver.memory.bytes[0] = std::byte{0xEE};
  receiver.take(receiver.read(0, 300));
  const auto again = receiver.answers();
  EXPECT_EQ(text_of(again), "first 0 #1 [256], last 1 #1 [44]");
  EXPECT_EQ(again[0].packet.payload[0], std::byte{0xEE});
  EXPECT_EQ(receiver.responder.messages(), 2U);
}

TEST(RepeatedRead, MayBeAPartThatWasRemembered) {
  const struct {
    int number;
    std::uint32_t length;
    std::uint64_t offset;
    const char* answer;
  } kRows[] = {{0, 600, 0, "first 0 #1 [256], middle 1 [256], last 2 #1 [88]"},
               {1, 344, 256, "first 1 #1 [256], last 2 #1 [88]"},
               {2, 88, 512, "only 2 #1 [88]"},
               {0, 256, 0, "only 0 #1 [256]"},
               {1, 256, 256, "only 1 #1 [256]"},
               {1, 345, 256, ""},  // more than there was
               {2, 89, 512, ""},
               {0, 601, 0, ""},
               {1, 256, 255, ""},  // elsewhere
               {1, 256, 0, ""},
               {0, 600, 256, ""},
               {-1, 256, 0, ""},  // never asked for
               {-3, 600, 0, ""}};
  for (const auto& row : kRows) {
    Receiver receiver(connection());
    receiver.take(receiver.read(0, 600));
    receiver.answers();
    const auto request = receiver.read(row.number, row.length, row.offset);
    receiver.take(request);
    const auto answers = receiver.answers();
    EXPECT_EQ(text_of(answers), row.answer);
    std::uint64_t at = row.offset;
    for (const Sent& sent : answers) {
      EXPECT_EQ(sent.packet.payload[0], receiver.memory.bytes[at]);
      at += kMtu;
    }
  }
}

TEST(RepeatedRead, HasTheSameKeyAndIsARead) {
  Receiver receiver(connection());
  receiver.take(receiver.read(0, 10));
  receiver.take(receiver.add(1));
  receiver.answers();
  wire::Packet other = receiver.read(0, 10);
  other.reth.key ^= 1;
  EXPECT_EQ(receiver.hears(other), "");
  EXPECT_EQ(receiver.hears(receiver.read(1, 0)), "");
  EXPECT_EQ(receiver.hears(receiver.add(0)), "");
}

TEST(RepeatedAtomic, IsAnsweredWithWhatItFoundAndNotCarriedOut) {
  Receiver receiver(connection());
  for (int i = 0; i < 3; ++i) receiver.take(receiver.add(i));
  EXPECT_EQ(receiver.says(), "value 0 #1 =0, value 1 #2 =1, value 2 #3 =2");
  EXPECT_EQ(receiver.hears(receiver.add(1)), "value 1 #2 =1");
  EXPECT_EQ(receiver.hears(receiver.add(-1)), "");
  EXPECT_EQ(receiver.memory.changed, 3U);
}

TEST(RepeatedAtomic, IsRememberedAsLongAsWasAgreedOn) {
  Settings settings = connection();
  settings.max_reads_of_peer = 2;
  Receiver receiver(settings);
  receiver.hears(receiver.add(0));
  receiver.hears(receiver.read(1, 10));
  EXPECT_EQ(receiver.hears(receiver.add(0)), "value 0 #1 =0");
  receiver.hears(receiver.add(2));
  EXPECT_EQ(receiver.hears(receiver.add(0)), "");
  EXPECT_EQ(receiver.hears(receiver.read(1, 10)), "only 1 #2 [10]");
  EXPECT_EQ(receiver.memory.changed, 2U);
}

}  // namespace
}  // namespace weft::transport::testing
