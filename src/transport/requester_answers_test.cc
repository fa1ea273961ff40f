// SPDX-License-Identifier: BSD-2-Clause
// What does an answer say about the work that was sent?
#include <gtest/gtest.h>

#include <string>

#include "test_flow.h"

namespace weft::transport::testing {
namespace {

using work::WorkKind;

using std::chrono::milliseconds;

// With `count` messages of one packet each on their way.
class Sends {
 public:
  Sends(const Settings& settings, int count) : sender(settings) {
    for (int i = 0; i < count; ++i) sender.post(WorkKind::kSend, 10);
    EXPECT_EQ(sender.packets().size(), static_cast<std::size_t>(count));
  }
  Sender sender;
};

TEST(Acknowledgement, EndsAllBeforeIt) {
  Sends flow(connection(), 5);
  flow.sender.acknowledge(2);
  EXPECT_EQ(flow.sender.ended_now(), "0 ok, 1 ok, 2 ok");
  flow.sender.acknowledge(4);
  EXPECT_EQ(flow.sender.ended_now(), "3 ok, 4 ok");
  EXPECT_FALSE(flow.sender.requester.busy());
}

TEST(Acknowledgement, EndsAMessageWithItsLastPacket) {
  Sender sender(connection());
  sender.post(WorkKind::kSend, 3 * kMtu);
  sender.packets();
  sender.acknowledge(1);
  EXPECT_EQ(sender.ended_now(), "");
  sender.acknowledge(2);
  EXPECT_EQ(sender.ended_now(), "0 ok");
}

TEST(Acknowledgement, OfWhatWasNeverSentSaysNothing) {
  Sends flow(connection(), 2);
  flow.sender.post(WorkKind::kSend, 5 * kMtu);
  for (const int ghost : {2, 3, 100, 1 << 22, (1 << 23) - 1, -1, -2, -1000, -(1 << 22)}) {
    flow.sender.acknowledge(ghost);
    flow.sender.nak(Nak::kSequence, ghost, 5);
    flow.sender.nak(Nak::kRemoteAccess, ghost);
    flow.sender.acknowledge(ghost, kSyndromeRnr | 1);
    flow.sender.value(ghost, 1);
    flow.sender.answer(Operation::kReadResponseOnly, ghost, 5);
  }
  EXPECT_EQ(flow.sender.ended_now(), "");
  EXPECT_FALSE(flow.sender.requester.failed());
  EXPECT_EQ(flow.sender.sends(1), "send-first 2 [256]") << "nothing goes again";
}

TEST(Acknowledgement, WithAReservedSyndromeSaysNothing) {
  Sends flow(connection(), 2);
  for (const std::uint8_t syndrome : {0x40, 0x5F, 0x80, 0xA0, 0xC0, 0xFF})
    flow.sender.acknowledge(1, syndrome);
  EXPECT_EQ(flow.sender.ended_now(), "");
}

TEST(SequenceError, OfOthersMeansAllFromThereOn) {
  Sends flow(connection(), 5);
  flow.sender.nak(Nak::kSequence, 2, 1);
  EXPECT_EQ(flow.sender.ended_now(), "0 ok, 1 ok");
  EXPECT_EQ(flow.sender.sends(), "send-only 2 [10], send-only 3 [10], send-only 4 [10]?");
  EXPECT_EQ(flow.sender.stats.of(Stat::kRetransmissions), 3U);
}

TEST(SequenceError, OfWeftMeansThoseOnly) {
  Sends flow(selective(), 9);
  flow.sender.nak(Nak::kSequence, 2, 2);
  flow.sender.nak(Nak::kSequence, 6, 1);
  EXPECT_EQ(flow.sender.ended_now(), "") << "it says nothing of those before";
  EXPECT_EQ(flow.sender.sends(), "send-only 2 [10], send-only 3 [10], send-only 6 [10]?");
  flow.sender.acknowledge(8);
  EXPECT_FALSE(flow.sender.requester.busy());
}

TEST(SequenceError, OfMoreThanWasSentMeansWhatWasSent) {
  Sends flow(selective(), 4);
  flow.sender.nak(Nak::kSequence, 2, 0xFF'FFFF);
  EXPECT_EQ(flow.sender.sends(), "send-only 2 [10], send-only 3 [10]?");
  flow.sender.nak(Nak::kSequence, 3, 0);
  EXPECT_EQ(flow.sender.sends(), "");
}

// What the peer keeps behind the missing ones fills no window: nothing else would make it speak.
TEST(SequenceError, OfNoneSaysThatTheOthersHaveArrived) {
  Sender sender(selective());
  sender.post(WorkKind::kSend, 200 * kMtu);
  const auto sent = static_cast<std::int32_t>(sender.packets().size());
  ASSERT_EQ(sender.requester.under_way(), sender.requester.window().size());
  sender.nak(Nak::kSequence, 0, 10);
  EXPECT_EQ(sender.sends(), "") << "the window has shrunk, and most of it may be under way";
  sender.nak(Nak::kSequence, sent - 1, 0);
  EXPECT_EQ(sender.requester.under_way(), 0U);
  const auto again = sender.packets();
  ASSERT_EQ(again.size(), sender.requester.window().size());
  EXPECT_EQ(again[0].packet.psn, psn(0));
  EXPECT_EQ(again[9].packet.psn, psn(9));
  EXPECT_EQ(again[10].packet.psn, psn(sent)) << "and then what is new";
  EXPECT_EQ(sender.stats.of(Stat::kRetransmissions), 10U);
}

TEST(SequenceError, OfNoneIsNoLoss) {
  Sends flow(selective(), 5);
  const unsigned before = flow.sender.requester.window().size();
  flow.sender.nak(Nak::kSequence, 4, 0);
  EXPECT_EQ(flow.sender.requester.window().size(), before);
  EXPECT_EQ(flow.sender.sends(), "");
}

// It is missing until it is there.
TEST(SequenceError, MayComeOfWhatWasSentAgain) {
  Sends flow(selective(), 9);
  for (int i = 0; i < 3; ++i) {
    flow.sender.nak(Nak::kSequence, 2, 2);
    flow.sender.nak(Nak::kSequence, 8, 0);
    EXPECT_EQ(flow.sender.sends(), "send-only 2 [10], send-only 3 [10]?");
    EXPECT_EQ(flow.sender.requester.under_way(), 2U);
  }
}

TEST(SequenceError, AsksForAWholeReadAgain) {
  Sender sender(selective());
  sender.post(WorkKind::kRead, 1000);
  sender.post(WorkKind::kSend, 10);
  sender.packets();
  sender.nak(Nak::kSequence, 0, 4);
  EXPECT_EQ(sender.sends(), "read 0 @0+1000");
}

TEST(SequenceError, IsForgottenWhenItIsAcknowledgedMeanwhile) {
  Sends flow(selective(), 5);
  flow.sender.nak(Nak::kSequence, 1, 3);
  flow.sender.acknowledge(2);
  EXPECT_EQ(flow.sender.sends(), "send-only 3 [10]?");
}

TEST(SequenceError, ShrinksTheWindow) {
  Sends flow(connection(), 5);
  const unsigned before = flow.sender.requester.window().size();
  flow.sender.nak(Nak::kSequence, 2);
  EXPECT_LT(flow.sender.requester.window().size(), before);
}

TEST(ReadAnswer, IsPutWhereItBelongs) {
  Sender sender(connection());
  sender.post(WorkKind::kRead, 600);
  std::fill(sender.buffer.begin(), sender.buffer.end(), std::byte{});
  sender.packets();
  sender.answer(Operation::kReadResponseFirst, 0, kMtu);
  sender.answer(Operation::kReadResponseMiddle, 1, kMtu);
  EXPECT_EQ(sender.ended_now(), "");
  sender.answer(Operation::kReadResponseLast, 2, 88);
  EXPECT_EQ(sender.ended_now(), "0 ok");
  const Bytes expected = pattern(600);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), sender.buffer.begin()));
  EXPECT_EQ(sender.buffer[600], std::byte{}) << "and not behind";
}

TEST(ReadAnswer, OfAnotherLengthIsNone) {
  Sender sender(connection());
  sender.post(WorkKind::kRead, 300);
  std::fill(sender.buffer.begin(), sender.buffer.end(), std::byte{});
  sender.packets();
  sender.answer(Operation::kReadResponseLast, 1, 45);
  sender.answer(Operation::kReadResponseLast, 1, 43);
  sender.answer(Operation::kReadResponseOnly, 1, 0);
  sender.answer(Operation::kReadResponseOnly, 0, 300);
  EXPECT_EQ(sender.buffer, Bytes(sender.buffer.size()));
  EXPECT_TRUE(sender.requester.busy());
}

TEST(ReadAnswer, CountsOnce) {
  Sender sender(connection());
  sender.post(WorkKind::kRead, 300);
  sender.post(WorkKind::kRead, 300);
  sender.packets();
  for (int i = 0; i < 3; ++i) sender.answer(Operation::kReadResponseFirst, 0, kMtu);
  EXPECT_EQ(sender.ended_now(), "");
  for (int i = 0; i < 3; ++i) sender.answer(Operation::kReadResponseLast, 1, 44);
  EXPECT_EQ(sender.ended_now(), "0 ok");
}

TEST(ReadAnswer, AcknowledgesWhatWasBefore) {
  Sender sender(connection());
  sender.post(WorkKind::kSend, 10);
  sender.post(WorkKind::kRead, 10);
  sender.packets();
  sender.answer(Operation::kReadResponseOnly, 1, 10);
  EXPECT_EQ(sender.ended_now(), "0 ok, 1 ok");
}

TEST(ReadAnswer, ThatWasLostIsAskedForAgain) {
  Sender sender(connection());
  sender.post(WorkKind::kRead, 5 * kMtu);
  sender.packets();
  sender.now += std::chrono::microseconds(300);
  sender.answer(Operation::kReadResponseFirst, 0, kMtu);
  const unsigned window = sender.requester.window().size();
  sender.answer(Operation::kReadResponseMiddle, 3, kMtu);
  EXPECT_LT(sender.requester.window().size(), window);
  EXPECT_EQ(sender.sends(), "read 1 @256+512");
  sender.answer(Operation::kReadResponseLast, 4, kMtu);
  EXPECT_EQ(sender.sends(), "") << "once in a round trip";
  sender.answer(Operation::kReadResponseFirst, 1, kMtu);
  EXPECT_EQ(sender.ended_now(), "");
  sender.answer(Operation::kReadResponseLast, 2, kMtu);
  EXPECT_EQ(sender.ended_now(), "0 ok");
}

// An acknowledgement behind it says so: answers come in order.
TEST(ReadAnswer, ThatWasOvertakenIsAskedForAgain) {
  for (const WorkKind kind : {WorkKind::kRead, WorkKind::kFetchAdd}) {
    Sender sender(connection());
    sender.post(kind, 8);
    sender.post(WorkKind::kSend, 10);
    sender.packets();
    sender.acknowledge(1);
    EXPECT_EQ(sender.ended_now(), "") << "it ends after the first";
    EXPECT_EQ(sender.sends(), kind == WorkKind::kRead ? "read 0 @0+8" : "add 0");
    if (kind == WorkKind::kRead) {
      sender.answer(Operation::kReadResponseOnly, 0, 8);
    } else {
      sender.value(0, 3);
    }
    EXPECT_EQ(sender.ended_now(), "0 ok, 1 ok");
    EXPECT_EQ(sender.requester.deadline(), Time::max());
  }
}

// With a wide way a part has so many that their places need several words.
TEST(ReadAnswer, ThatIsLostAmongManyIsAskedForAgain) {
  Sender sender(selective());
  std::int32_t next = 0;
  while (sender.requester.window().size() < 512) {
    for (unsigned i = 0; i < 512; ++i) sender.post(WorkKind::kSend, 1);
    for (int rest = 512; rest > 0;) {
      const auto count = static_cast<std::int32_t>(sender.packets().size());
      ASSERT_GT(count, 0);
      rest -= count;
      next += count;
      sender.acknowledge(next - 1);
    }
  }
  sender.ended_now();
  const auto read = [next](std::int32_t first, std::size_t count) {
    return "read " + std::to_string(next + first) + " @" + std::to_string(first * kMtu) + "+" +
           std::to_string(count * kMtu);
  };
  sender.post(WorkKind::kRead, 300 * kMtu);
  EXPECT_EQ(sender.sends(), read(0, 256) + ", " + read(256, 44));
  sender.now += milliseconds(1);
  for (std::int32_t i = 0; i < 300; ++i) {
    if (i == 0 || (i >= 100 && i < 200) || i == 255) continue;
    sender.answer(Operation::kReadResponseMiddle, next + i, kMtu);
  }
  EXPECT_EQ(sender.sends(), read(0, 1) + ", " + read(100, 100) + ", " + read(255, 1));
  sender.answer(Operation::kReadResponseOnly, next, kMtu);
  EXPECT_EQ(sender.ended_now(), "");
  for (std::int32_t i = 100; i < 200; ++i) {
    sender.answer(Operation::kReadResponseMiddle, next + i, kMtu);
  }
  sender.answer(Operation::kReadResponseOnly, next + 255, kMtu);
  EXPECT_EQ(sender.ended_now(), std::to_string(next) + " ok");
}

TEST(ReadAnswer, ThatNeverComesIsAskedForByTheClock) {
  Sender sender(connection());
  sender.post(WorkKind::kRead, 64 * kMtu);
  sender.packets();
  for (int i = 10; i < 64; ++i) sender.answer(Operation::kReadResponseMiddle, i, kMtu);
  sender.packets();  // which is lost
  sender.wait();
  EXPECT_EQ(sender.sends(), "read 0 @0+2560");
}

TEST(ReadAnswer, ThatNeverComesIsAskedForOnceByTheClock) {
  for (const bool weft : {false, true}) {
    Sender sender(weft ? selective() : connection());
    sender.post(WorkKind::kRead, 4 * kMtu);
    sender.packets();
    sender.answer(Operation::kReadResponseFirst, 0, kMtu);
    sender.wait();
    EXPECT_EQ(sender.sends(), "read 1 @256+768");
  }
}

TEST(ReadAnswer, ThatNeverComesDoesNotHideWhatIsBehindIt) {
  Sender sender(connection());
  sender.post(WorkKind::kRead, 4 * kMtu);
  sender.post(WorkKind::kSend, 10);
  sender.packets();
  sender.answer(Operation::kReadResponseFirst, 0, kMtu);
  sender.wait();
  EXPECT_EQ(sender.sends(), "read 1 @256+768, send-only 4 [10]?");
}

TEST(AtomicAnswer, BringsTheValue) {
  Sender sender(connection());
  sender.post(WorkKind::kFetchAdd, 8);
  sender.post(WorkKind::kRead, 8);
  sender.packets();
  sender.answer(Operation::kReadResponseOnly, 0, 8);
  sender.value(1, 99);
  EXPECT_EQ(sender.original, 0U) << "of another kind of work";
  EXPECT_EQ(sender.ended_now(), "");
  sender.value(0, 42);
  EXPECT_EQ(sender.original, 42U);
  EXPECT_EQ(sender.ended_now(), "0 ok");
  sender.value(0, 43);
  EXPECT_EQ(sender.original, 42U);
}

TEST(RoundTrip, IsMeasuredOfPacketsThatWereSentOnce) {
  Sends flow(connection(), 1);
  flow.sender.now += milliseconds(3);
  flow.sender.acknowledge(0);
  EXPECT_EQ(flow.sender.requester.window().round_trip(), milliseconds(3));
  flow.sender.post(WorkKind::kSend, 10);
  flow.sender.packets();
  flow.sender.nak(Nak::kSequence, 1);
  flow.sender.packets();
  flow.sender.now += milliseconds(50);
  flow.sender.acknowledge(1);
  EXPECT_EQ(flow.sender.requester.window().round_trip(), milliseconds(3));
}

TEST(Mark, ShrinksTheWindow) {
  Sends flow(connection(), 5);
  flow.sender.requester.marked(flow.sender.now);
  EXPECT_EQ(flow.sender.requester.window().size(), 44U);
}

}  // namespace
}  // namespace weft::transport::testing
