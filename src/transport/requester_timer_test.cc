// SPDX-License-Identifier: BSD-2-Clause
// When does a requester try again, and when does it give up?
#include <gtest/gtest.h>

#include "test_flow.h"

namespace weft::transport::testing {
namespace {

using work::WorkKind;

using std::chrono::milliseconds;

constexpr std::uint8_t kRnr = kSyndromeRnr;

TEST(Timer, IsOffWhileNothingIsUnanswered) {
  Sender sender(connection());
  EXPECT_EQ(sender.requester.deadline(), Time::max());
  sender.post(WorkKind::kSend, 10);
  EXPECT_EQ(sender.requester.deadline(), Time::max()) << "nothing was sent";
  sender.packets();
  EXPECT_LT(sender.requester.deadline(), Time::max());
  sender.acknowledge(0);
  EXPECT_EQ(sender.requester.deadline(), Time::max());
}

TEST(Timer, DoublesWhileNothingIsHeardAndEndsWithTheLastRetry) {
  Settings settings = connection();
  settings.ack_timeout = milliseconds(67);
  settings.retries = 3;
  Sender sender(settings);
  sender.post(WorkKind::kSend, 10);
  sender.packets();
  const Time begin = sender.now;
  std::vector<std::int64_t> waits;
  while (!sender.requester.failed()) {
    const Time before = sender.now;
    sender.wait();
    waits.push_back((sender.now - before) / milliseconds(1));
    if (!sender.requester.failed()) {
      EXPECT_EQ(sender.sends(), "send-only 0 [10]?");
    }
  }
  EXPECT_EQ(waits, (std::vector<std::int64_t>{20, 40, 67, 67, 67, 67}));
  EXPECT_GE(sender.now - begin, 4 * settings.ack_timeout);
  EXPECT_EQ(sender.ended_now(), "0 retries");
  EXPECT_EQ(sender.stats.of(Stat::kAckTimeouts), waits.size());
}

// The program computed for an hour; the answer waits in its socket.
TEST(Timer, IsNoEndWithoutPollsMeanwhile) {
  Sender sender(connection());
  sender.post(WorkKind::kSend, 10);
  sender.packets();
  sender.pass(std::chrono::hours(1));
  sender.requester.tick(sender.now);
  EXPECT_FALSE(sender.requester.failed());
  sender.acknowledge(0);
  EXPECT_EQ(sender.ended_now(), "0 ok");
}

TEST(Timer, BeginsAnewWithEachProgress) {
  Settings settings = connection();
  settings.retries = 1;
  Sender sender(settings);
  sender.post(WorkKind::kSend, 40 * kMtu);
  sender.packets();
  for (int i = 0; i < 30; ++i) {
    sender.pass(milliseconds(100));
    sender.acknowledge(i);
  }
  EXPECT_FALSE(sender.requester.failed());
}

TEST(Timer, IsShortAgainAfterProgress) {
  Sender sender(connection());
  sender.post(WorkKind::kSend, 2 * kMtu);
  sender.packets();
  sender.wait();
  sender.wait();
  sender.packets();
  sender.acknowledge(0);
  EXPECT_EQ(sender.requester.deadline(), sender.now + sender.requester.window().rto());
  const Time before = sender.now;
  sender.wait();
  EXPECT_EQ(sender.now - before, sender.requester.window().rto());
  sender.wait();
  EXPECT_EQ(sender.now - before, 3 * sender.requester.window().rto());
}

TEST(Timer, TakesNoRepeatedAnswerForProgress) {
  Settings settings = connection();
  settings.retries = 1;
  Sender sender(settings);
  sender.post(WorkKind::kRead, 2 * kMtu);
  sender.packets();
  for (int i = 0; i < 40; ++i) {
    sender.answer(Operation::kReadResponseFirst, 0, kMtu);
    sender.pass(milliseconds(20));
    sender.packets();
  }
  EXPECT_EQ(sender.ended_now(), "0 retries");
}

TEST(Timer, NeverGivesUpWithoutATimeout) {
  Settings settings = connection();
  settings.ack_timeout = ack_timeout(0);
  Sender sender(settings);
  sender.post(WorkKind::kSend, 10);
  sender.packets();
  for (int i = 0; i < 20; ++i) {
    sender.wait();
    EXPECT_EQ(sender.sends(), "send-only 0 [10]?");
  }
  EXPECT_FALSE(sender.requester.failed());
}

TEST(Timer, RequestsAllAgainFromAForeignPeer) {
  Sender sender(connection());
  for (int i = 0; i < 3; ++i) sender.post(WorkKind::kSend, 10);
  sender.packets();
  sender.wait();
  EXPECT_EQ(sender.sends(), "send-only 0 [10], send-only 1 [10], send-only 2 [10]?");
}

// The first makes it answer, the last makes it name all that it lacks between them.
TEST(Timer, SendsTheFirstAndTheLastToAPeerWithSelectiveNaks) {
  Sender sender(selective());
  for (int i = 0; i < 30; ++i) sender.post(WorkKind::kSend, 10);
  sender.packets();
  sender.wait();
  EXPECT_EQ(sender.sends(), "send-only 0 [10], send-only 29 [10]?");
  sender.nak(Nak::kSequence, 1, 28);
  sender.acknowledge(0);
  std::size_t again = 0;
  for (int round = 0; round < 10 && sender.requester.busy(); ++round) {
    const auto packets = sender.packets();
    again += packets.size();
    if (packets.empty()) break;
    EXPECT_LE(packets.size(), sender.requester.window().size());
    EXPECT_TRUE(packets.back().packet.ack_request);
    const std::int32_t last = packets.back().packet.psn.since(kFirstPsn);
    sender.acknowledge(last == 28 ? 29 : last);
  }
  EXPECT_EQ(again, 28U);
  EXPECT_FALSE(sender.requester.busy());
  EXPECT_EQ(sender.stats.of(Stat::kAckTimeouts), 1U);
}

// The answer to the first question says what was lost.
TEST(Timer, ShrinksTheWindowOfAPeerWithSelectiveNaksAtTheSecondTimeout) {
  Sender sender(selective());
  for (int i = 0; i < 30; ++i) sender.post(WorkKind::kSend, 10);
  sender.packets();
  const unsigned before = sender.requester.window().size();
  sender.wait();
  EXPECT_EQ(sender.requester.window().size(), before);
  sender.packets();
  sender.wait();
  EXPECT_LT(sender.requester.window().size(), before);
}

// It had not looked: with more processes than processors that is so all the time.
TEST(Timer, LeavesTheWindowAsItWasWhenNothingWasLost) {
  Sender sender(selective());
  for (int i = 0; i < 30; ++i) sender.post(WorkKind::kSend, 10);
  sender.packets();
  const unsigned before = sender.requester.window().size();
  for (int i = 0; i < 3; ++i) {
    sender.wait();
    sender.packets();
  }
  EXPECT_LT(sender.requester.window().size(), before);
  sender.acknowledge(15);
  EXPECT_GE(sender.requester.window().size(), before);
}

TEST(Timer, BeginsSlowlyWhenSomethingWasLost) {
  Sender sender(selective());
  for (int i = 0; i < 30; ++i) sender.post(WorkKind::kSend, 10);
  sender.packets();
  for (int i = 0; i < 3; ++i) {
    sender.wait();
    sender.packets();
  }
  sender.nak(Nak::kSequence, 10, 5);
  sender.acknowledge(9);
  EXPECT_LT(sender.requester.window().size(), 20U);
}

TEST(Timer, SendsOnceMoreWhatWasSentAgain) {
  Sender sender(selective());
  for (int i = 0; i < 9; ++i) sender.post(WorkKind::kSend, 10);
  sender.packets();
  sender.nak(Nak::kSequence, 2, 3);
  sender.nak(Nak::kSequence, 8, 0);
  EXPECT_EQ(sender.sends(), "send-only 2 [10], send-only 3 [10], send-only 4 [10]?");
  sender.acknowledge(1);
  sender.wait();
  EXPECT_EQ(sender.sends(),
            "send-only 2 [10], send-only 3 [10], send-only 4 [10], send-only 8 [10]?");
}

TEST(Timer, AsksForAllOfAReadThatWasSentLast) {
  Sender sender(selective());
  sender.post(WorkKind::kSend, 10);
  sender.post(WorkKind::kRead, 1000);
  sender.packets();
  sender.wait();
  EXPECT_EQ(sender.sends(), "send-only 0 [10], read 1 @0+1000");
}

// What is sent again, too, is in flight.
TEST(Timer, SendsNoMoreAgainThanTheWindowAllows) {
  Sender sender(connection());
  sender.post(WorkKind::kSend, 60 * kMtu);
  EXPECT_EQ(sender.packets().size(), 60U);
  sender.wait();
  const auto again = sender.packets();
  ASSERT_EQ(again.size(), sender.requester.window().size());
  EXPECT_LT(again.size(), 20U);
  EXPECT_TRUE(again.back().packet.ack_request);
  EXPECT_FALSE(sender.requester.ready(sender.now));
  sender.acknowledge(again.back().packet.psn.since(kFirstPsn));
  EXPECT_TRUE(sender.requester.ready(sender.now));
}

TEST(Timer, WaitsAsLongAsAReceiverWants) {
  Sender sender(connection());
  sender.post(WorkKind::kSend, 10);
  sender.post(WorkKind::kSend, 11);
  sender.packets();
  sender.acknowledge(0, kRnr | 14);
  EXPECT_EQ(sender.requester.deadline(), sender.now + rnr_wait(14));
  const unsigned window = sender.requester.window().size();
  sender.acknowledge(0, kSyndromeNak);
  EXPECT_EQ(sender.requester.window().size(), window) << "rxe complains of what it dropped";
  sender.acknowledge(0, kRnr | 20);
  EXPECT_EQ(sender.requester.deadline(), sender.now + rnr_wait(14)) << "one answer is enough";
  sender.now += rnr_wait(14) - Duration(1);
  EXPECT_EQ(sender.sends(), "");
  sender.now += Duration(1);
  EXPECT_EQ(sender.sends(), "send-only 0 [10], send-only 1 [11]?");
  sender.acknowledge(1);
  EXPECT_EQ(sender.ended_now(), "0 ok, 1 ok");
}

// A wait of a connection manager's usual 655 ms is longer than all retries together.
TEST(Timer, TakesNoWaitForSilence) {
  for (const bool ticks : {true, false}) {
    Sender sender(connection());
    ASSERT_LT(sender.settings.ack_timeout * (sender.settings.retries + 1), rnr_wait(0));
    for (int i = 0; i < 6; ++i) sender.post(WorkKind::kSend, 10);
    sender.packets();
    for (int i = 0; i < 5; ++i) {
      sender.acknowledge(i, kRnr | 0);
      if (ticks) {
        sender.wait();
      } else {
        sender.now += rnr_wait(0);
      }
      EXPECT_FALSE(sender.packets().empty());
      sender.pass(milliseconds(1));
      EXPECT_FALSE(sender.requester.failed());
    }
    EXPECT_EQ(sender.stats.of(Stat::kAckTimeouts), 0U);
  }
}

TEST(Timer, IsOffWhenAWaitEndsWithNothingToDo) {
  Sender sender(connection());
  sender.post(WorkKind::kSend, 10);
  sender.packets();
  sender.acknowledge(0, kRnr | 14);
  sender.acknowledge(0);
  EXPECT_EQ(sender.ended_now(), "0 ok");
  sender.now += milliseconds(10);
  sender.requester.tick(sender.now);
  sender.now += std::chrono::hours(1);
  sender.post(WorkKind::kSend, 10);
  sender.packets();
  EXPECT_GT(sender.requester.deadline(), sender.now);
  sender.pass(milliseconds(1));
  EXPECT_FALSE(sender.requester.failed());
}

TEST(Timer, CountsHowOftenInARowAReceiverWasNotReady) {
  Settings settings = connection();
  settings.rnr_retries = 2;
  Sender sender(settings);
  sender.post(WorkKind::kSend, 10);
  sender.post(WorkKind::kSend, 10);
  for (int i = 0; i < 2; ++i) {
    sender.packets();
    sender.acknowledge(0, kRnr | 1);
    sender.wait();
  }
  sender.packets();
  sender.acknowledge(1, kRnr | 1);  // which acknowledges the one before
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(sender.ended_now(), i == 0 ? "0 ok" : "");
    sender.wait();
    sender.packets();
    sender.acknowledge(1, kRnr | 1);
  }
  EXPECT_EQ(sender.ended_now(), "1 rnr");
}

TEST(Timer, WaitsForAReceiverWithoutEndWhenSoAsked) {
  Settings settings = connection();
  settings.rnr_retries = kRnrRetryForever;
  Sender sender(settings);
  sender.post(WorkKind::kSend, 10);
  for (int i = 0; i < 100; ++i) {
    sender.packets();
    sender.acknowledge(0, kRnr | 1);
    sender.wait();
  }
  EXPECT_EQ(sender.ended_now(), "");
}

}  // namespace
}  // namespace weft::transport::testing
