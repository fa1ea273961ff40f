// SPDX-License-Identifier: BSD-2-Clause
// How does work become packets?
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "test_flow.h"

namespace weft::transport::testing {
namespace {

using work::Work;
using work::WorkKind;

struct Row {
  WorkKind kind;
  std::size_t length;
  const char* packets;
};

TEST(Requester, CutsWorkIntoPackets) {
  const Row kRows[] = {
      {WorkKind::kSend, 0, "send-only 0?"},
      {WorkKind::kSend, 1, "send-only 0 [1]?"},
      {WorkKind::kSend, kMtu, "send-only 0 [256]?"},
      {WorkKind::kSend, kMtu + 1, "send-first 0 [256], send-last 1 [1]?"},
      {WorkKind::kSend, 3 * kMtu, "send-first 0 [256], send-middle 1 [256], send-last 2 [256]?"},
      {WorkKind::kWrite, 0, "write-only 0 @0+0?"},
      {WorkKind::kWrite, kMtu, "write-only 0 @0+256 [256]?"},
      {WorkKind::kWrite, kMtu + 1, "write-first 0 @0+257 [256], write-last 1 [1]?"},
      {WorkKind::kWrite, 2 * kMtu + 3,
       "write-first 0 @0+515 [256], write-middle 1 [256], write-last 2 [3]?"},
      {WorkKind::kRead, 0, "read 0 @0+0"},
      {WorkKind::kRead, kMtu, "read 0 @0+256"},
      {WorkKind::kRead, kMtu + 1, "read 0 @0+257"},
      {WorkKind::kCompareSwap, 8, "swap 0"},
      {WorkKind::kFetchAdd, 8, "add 0"}};
  for (const Row& row : kRows) {
    Sender sender(connection());
    sender.post(row.kind, row.length);
    const auto packets = sender.packets();
    EXPECT_EQ(text_of(packets), row.packets);
    if (row.kind >= WorkKind::kRead) continue;
    Bytes whole;
    for (const Sent& sent : packets)
      whole.insert(whole.end(), sent.packet.payload.begin(), sent.packet.payload.end());
    EXPECT_EQ(whole, pattern(row.length));
  }
}

TEST(Requester, ForgetsWorkOfWhichNothingWasSent) {
  Sender sender(connection());
  const auto work = [](std::uintptr_t number) { return reinterpret_cast<const void*>(number); };
  sender.post(WorkKind::kSend, 1);
  EXPECT_EQ(sender.sends(), "send-only 0 [1]?");
  sender.post(WorkKind::kSend, kMtu + 1);
  sender.post(WorkKind::kSend, 3);
  EXPECT_FALSE(sender.requester.withdraw(work(0))) << "it was sent";
  EXPECT_TRUE(sender.requester.withdraw(work(1)));
  EXPECT_FALSE(sender.requester.withdraw(work(1)));
  EXPECT_EQ(sender.sends(), "send-only 1 [3]?");
  sender.acknowledge(1);
  EXPECT_EQ(sender.ended_now(), "0 ok, 2 ok");
}

TEST(Requester, RestartsBehindTheLastExecutedPacketInAnotherSize) {
  Settings wide = datagrams();
  wide.path_mtu = 2 * kMtu;
  Sender sender(wide);
  sender.post(WorkKind::kSend, 4 * kMtu);
  sender.post(WorkKind::kRead, 2 * kMtu);
  sender.post(WorkKind::kSend, 1);
  sender.post(WorkKind::kWrite, 6 * kMtu);
  sender.post(WorkKind::kSend, 1);
  sender.sends(5);
  sender.requester.pause();
  EXPECT_EQ(sender.sends(), "");
  sender.acknowledge(1);
  EXPECT_EQ(sender.ended_now(), "") << "the answer could be about other numbers";
  EXPECT_EQ(sender.requester.unused(), psn(5));
  EXPECT_FALSE(sender.requester.restart(psn(6), kMtu, sender.now)) << "was never sent";
  EXPECT_TRUE(sender.requester.restart(psn(5), kMtu, sender.now));
  EXPECT_EQ(sender.ended_now(), "0 ok") << "the answer of the read was not received";
  EXPECT_EQ(sender.sends(),
            "read 5 @0+512, write-middle 7 [256], write-middle 8 [256], write-middle 9 [256], "
            "write-last 10 [256], send-only 11 [1]?");
}

TEST(Requester, ReportsExecutedWorkInOrderBehindAReadThatBeginsAnew) {
  Sender sender(datagrams());
  for (const WorkKind kind : {WorkKind::kRead, WorkKind::kSend, WorkKind::kSend}) {
    sender.post(kind, 1);
  }
  EXPECT_EQ(sender.sends(2), "read 0 @0+1, send-only 1 [1]");
  sender.requester.pause();
  EXPECT_TRUE(sender.requester.restart(psn(2), kMtu, sender.now));
  EXPECT_EQ(sender.ended_now(), "");
  EXPECT_FALSE(sender.requester.withdraw(reinterpret_cast<const void*>(1))) << "it was executed";
  EXPECT_EQ(sender.sends(), "read 2 @0+1, send-only 3 [1]?");
  sender.answer(Operation::kReadResponseOnly, 2, 1);
  sender.acknowledge(3);
  EXPECT_EQ(sender.ended_now(), "0 ok, 1 ok, 2 ok");
}

// Posts a read, of which the answer is lost, and a SEND of three packets behind it, and restarts
// between the first packet of the SEND and the second.
void restart_within_a_send(Sender& sender) {
  sender.post(WorkKind::kRead, 1);
  sender.post(WorkKind::kSend, 3 * kMtu);
  EXPECT_EQ(sender.sends(2), "read 0 @0+1, send-first 1 [256]");
  sender.requester.pause();
  EXPECT_TRUE(sender.requester.restart(psn(2), kMtu, sender.now));
  EXPECT_EQ(sender.sends(), "read 2 @0+1, send-middle 3 [256], send-last 4 [256]?");
}

TEST(Requester, SendsAMessageFromItsBeginningWhenThePeerRefusesTheReadBeforeIt) {
  Sender sender(datagrams());
  restart_within_a_send(sender);
  sender.nak(Nak::kRemoteAccess, 2);
  EXPECT_EQ(sender.sends(), "resync 5");
  sender.acknowledge(5);
  EXPECT_EQ(sender.sends(), "send-first 6 [256], send-middle 7 [256], send-last 8 [256]?");
}

TEST(Requester, SendsAMessageFromItsBeginningWhenThePeerHasGivenItUpAfterARestart) {
  Sender sender(datagrams());
  restart_within_a_send(sender);
  sender.answer(Operation::kReadResponseOnly, 2, 1);
  sender.nak(Nak::kBeginAgain, 3);
  EXPECT_EQ(sender.ended_now(), "0 ok");
  EXPECT_EQ(sender.sends(), "resync 5");
  sender.acknowledge(5);
  EXPECT_EQ(sender.sends(), "send-first 6 [256], send-middle 7 [256], send-last 8 [256]?");
}

TEST(Requester, SendsAMessageFromItsBeginningWhenTheNextRestartComesBeforeTheRefusal) {
  Sender sender(datagrams());
  restart_within_a_send(sender);
  sender.requester.pause();
  EXPECT_TRUE(sender.requester.restart(psn(1), kMtu, sender.now)) << "the message's old number";
  EXPECT_EQ(sender.sends(),
            "read 5 @0+1, send-first 6 [256], send-middle 7 [256], send-last 8 [256]?");
}

TEST(Requester, ContinuesAMessageBehindTwoRestartsWithoutARefusal) {
  Sender sender(datagrams());
  restart_within_a_send(sender);
  sender.requester.pause();
  EXPECT_TRUE(sender.requester.restart(psn(4), kMtu, sender.now));
  EXPECT_EQ(sender.sends(), "read 5 @0+1, send-last 6 [256]?");
}

TEST(Requester, RestartsOnlyWithTheValuesOfExecutedAtomicOperations) {
  Sender sender(datagrams());
  sender.post(WorkKind::kFetchAdd, 8);
  sender.post(WorkKind::kSend, 1);
  sender.sends(1);
  sender.requester.pause();
  EXPECT_FALSE(sender.requester.restart(psn(1), kMtu, sender.now));
  EXPECT_EQ(sender.sends(), "add 0") << "with its number";
  sender.value(0, 7);
  EXPECT_EQ(sender.ended_now(), "0 ok");
  EXPECT_TRUE(sender.requester.restart(psn(1), kMtu, sender.now));
  EXPECT_EQ(sender.sends(), "send-only 1 [1]?");
}

// Work that a message of the peer answers.
TEST(Requester, WorkMayBeKnownToHaveArrivedWithoutAnAcknowledgement) {
  Sender sender(datagrams());
  for (int i = 0; i < 3; ++i) sender.post(WorkKind::kSend, 1);
  sender.post(WorkKind::kSend, 2 * kMtu);
  sender.sends(4);
  sender.arrived(7);
  sender.arrived(3);
  EXPECT_EQ(sender.ended_now(), "") << "unknown, or not sent as a whole yet";
  sender.arrived(1);
  EXPECT_EQ(sender.ended_now(), "0 ok, 1 ok");
  sender.sends();
  sender.arrived(1);
  EXPECT_EQ(sender.ended_now(), "");
  sender.arrived(3);
  EXPECT_EQ(sender.ended_now(), "2 ok, 3 ok");
  EXPECT_FALSE(sender.requester.busy());
}

TEST(Requester, NumbersReadsByTheirAnswers) {
  const struct {
    std::size_t length;
    const char* next;
  } kRows[] = {{0, "send-only 1?"},
               {1, "send-only 1?"},
               {kMtu, "send-only 1?"},
               {kMtu + 1, "send-only 2?"},
               {5 * kMtu, "send-only 5?"}};
  for (const auto& row : kRows) {
    Sender sender(connection());
    sender.post(WorkKind::kRead, row.length);
    sender.packets();
    sender.post(WorkKind::kSend, 0);
    EXPECT_EQ(sender.sends(), row.next);
  }
}

TEST(Requester, SaysWhatComesWithTheLastPacketThere) {
  const struct {
    WorkKind kind;
    bool invalidates;
    std::size_t length;
    Operation last;
  } kRows[] = {{WorkKind::kSend, false, 5, Operation::kSendOnlyImmediate},
               {WorkKind::kSend, false, 300, Operation::kSendLastImmediate},
               {WorkKind::kSend, true, 5, Operation::kSendOnlyInvalidate},
               {WorkKind::kSend, true, 300, Operation::kSendLastInvalidate},
               {WorkKind::kWrite, false, 5, Operation::kWriteOnlyImmediate},
               {WorkKind::kWrite, false, 300, Operation::kWriteLastImmediate}};
  for (const auto& row : kRows) {
    Sender sender(connection());
    Work work = sender.work(row.kind, row.length);
    (row.invalidates ? work.invalidates : work.has_immediate) = true;
    work.immediate = 0xABCD;
    work.solicited = true;
    sender.requester.post(work);
    const auto packets = sender.packets();
    const wire::Packet& last = packets.back().packet;
    EXPECT_EQ(packets.back().operation(), row.last);
    EXPECT_EQ(row.invalidates ? last.invalidate : last.immediate, 0xABCDU);
    EXPECT_TRUE(last.solicited);
    EXPECT_TRUE(packets.size() == 1 || !packets[0].packet.solicited);
  }
}

TEST(Requester, SaysWhatAnAtomicOperationDoes) {
  for (const WorkKind kind : {WorkKind::kCompareSwap, WorkKind::kFetchAdd}) {
    Sender sender(connection());
    Work work = sender.work(kind, 8);
    work.compare = 5;
    work.swap_or_add = 6;
    sender.requester.post(work);
    const wire::AtomicEth atomic = sender.packets().at(0).packet.atomic;
    EXPECT_EQ(atomic.address, Memory::kAddress);
    EXPECT_EQ(atomic.key, Memory::kKey);
    EXPECT_EQ(atomic.compare, 5U);
    EXPECT_EQ(atomic.swap_or_add, 6U);
  }
}

TEST(Requester, NamesThePeerInItsPackets) {
  Settings settings = datagrams();
  settings.destination = 0xABCDEF;
  settings.source = 0x13579B;
  settings.context = 0x123456;
  settings.queue_key = 0x8001'0000;
  settings.pkey = 0x8001;
  Sender sender(settings);
  sender.post(WorkKind::kSend, 600);
  for (const Sent& sent : sender.packets()) {
    EXPECT_EQ(sent.packet.destination, 0xABCDEFU);
    EXPECT_EQ(sent.packet.source, 0x13579BU);
    EXPECT_EQ(sent.packet.end_to_end_context, 0x123456U);
    EXPECT_EQ(sent.packet.queue_key, 0x8001'0000U);
    EXPECT_EQ(sent.packet.pkey, 0x8001);
  }
  settings.kind = wire::Transport::kExtendedReliable;
  Sender extended(settings);
  work::Work named = extended.work(WorkKind::kSend, 600);
  named.shared_receive = 0x77;
  extended.requester.post(named);
  for (const Sent& sent : extended.packets()) EXPECT_EQ(sent.packet.shared_receive, 0x77U);
}

// At the end of what there is to send, and every 16 packets.
TEST(Requester, AsksForAnswersNowAndThen) {
  Sender sender(connection());
  sender.post(WorkKind::kSend, 20 * kMtu);
  sender.post(WorkKind::kSend, 10);
  std::vector<std::int32_t> asked;
  for (const Sent& sent : sender.packets()) {
    if (sent.packet.ack_request) asked.push_back(sent.packet.psn.since(kFirstPsn));
  }
  EXPECT_EQ(asked, (std::vector<std::int32_t>{15, 20}));
}

// Those behind it need not ask so soon.
TEST(Requester, RequestsNoAckBeforeARequestWithAResponse) {
  Sender sender(connection());
  for (int i = 0; i < 10; ++i) sender.post(WorkKind::kWrite, 1);
  sender.post(WorkKind::kRead, 1);
  for (int i = 0; i < 10; ++i) sender.post(WorkKind::kWrite, 1);
  sender.post(WorkKind::kFetchAdd, 8);
  for (const Sent& sent : sender.packets()) EXPECT_FALSE(sent.packet.ack_request);
}

TEST(Requester, SendsNoMoreThanTheWindowAllowsAndAsksAtItsEnd) {
  Settings settings = connection();
  settings.max_window = 3;
  Sender sender(settings);
  sender.post(WorkKind::kSend, 5 * kMtu);
  EXPECT_EQ(sender.sends(), "send-first 0 [256], send-middle 1 [256], send-middle 2 [256]?");
  EXPECT_FALSE(sender.requester.ready(sender.now));
  sender.acknowledge(0);
  EXPECT_EQ(sender.sends(), "send-middle 3 [256]?");
  sender.acknowledge(3);
  EXPECT_EQ(sender.sends(), "send-last 4 [256]?");
}

TEST(Requester, HasNoMoreReadsUnderWayThanThePeerRemembers) {
  Settings settings = connection();
  settings.max_reads = 2;
  Sender sender(settings);
  sender.post(WorkKind::kRead, 1);
  sender.post(WorkKind::kFetchAdd, 8);
  sender.post(WorkKind::kRead, 1);
  sender.post(WorkKind::kSend, 1);
  EXPECT_EQ(sender.sends(), "read 0 @0+1, add 1");
  sender.value(1, 0);
  EXPECT_EQ(sender.sends(), "read 0 @0+1") << "the first still needs to be remembered";
  sender.answer(Operation::kReadResponseOnly, 0, 1);
  EXPECT_EQ(sender.sends(), "read 2 @0+1, send-only 3 [1]?");
}

TEST(Requester, WaitsAtAFenceForValues) {
  Sender sender(connection());
  sender.post(WorkKind::kSend, 1);
  sender.post(WorkKind::kRead, 1);
  Work fenced = sender.work(WorkKind::kSend, 2);
  fenced.fence = true;
  sender.requester.post(fenced);
  sender.post(WorkKind::kSend, 3);
  EXPECT_EQ(sender.sends(), "send-only 0 [1], read 1 @0+1");
  sender.acknowledge(0);
  EXPECT_EQ(sender.sends(), "");
  sender.answer(Operation::kReadResponseOnly, 1, 1);
  EXPECT_EQ(sender.sends(), "send-only 2 [2], send-only 3 [3]?");
}

TEST(Requester, AsksForLongReadsInParts) {
  Sender sender(connection());
  Work work = sender.work(WorkKind::kRead, 130 * kMtu + 7);
  work.address += 5;
  sender.requester.post(work);
  std::fill(sender.buffer.begin(), sender.buffer.end(), std::byte{});
  EXPECT_EQ(sender.sends(), "read 0 @5+16384");
  for (int i = 0; i < 64; ++i) sender.answer(Operation::kReadResponseMiddle, i, kMtu);
  EXPECT_EQ(sender.ended_now(), "") << "a part is not all";
  EXPECT_EQ(sender.sends(), "read 64 @16389+16384, read 128 @32773+519");
  for (int i = 64; i < 130; ++i) sender.answer(Operation::kReadResponseMiddle, i, kMtu);
  sender.answer(Operation::kReadResponseLast, 130, 7);
  EXPECT_EQ(sender.ended_now(), "0 ok");
  const Bytes expected = pattern(130 * kMtu + 7);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), sender.buffer.begin()));
}

TEST(Requester, TakesTheLongestReadWithoutMakingAllItsParts) {
  Settings settings = connection();
  settings.max_reads = 2;
  Sender sender(settings);
  sender.requester.post(sender.work(WorkKind::kRead, 0));
  Work longest = sender.work(WorkKind::kRead, 0);
  longest.length = work::kMaxMessage;
  longest.sges = {};
  sender.requester.post(longest);
  EXPECT_EQ(sender.sends(), "read 0 @0+0, read 1 @0+16384");
}

TEST(Requester, SaysHowManyPacketsOfAMessageAreAtHand) {
  Sender sender(selective());
  EXPECT_EQ(sender.requester.at_hand(), 0U);
  sender.post(WorkKind::kSend, 3 * kMtu);
  sender.post(WorkKind::kSend, 2000 * kMtu);
  EXPECT_EQ(sender.requester.at_hand(), 3U);
  std::array<std::byte, wire::kMaxHeaderBytes + kMtu> out;
  sender.requester.next(sender.now, out);
  EXPECT_EQ(sender.requester.at_hand(), 2U);
  sender.requester.next(sender.now, out);
  sender.requester.next(sender.now, out);
  EXPECT_EQ(sender.requester.at_hand(), sender.requester.window().size() - 3);
  while (sender.requester.next(sender.now, out) != 0) continue;
  EXPECT_EQ(sender.requester.at_hand(), 0U);
}

// Half of all numbers later the first ones lie ahead, not behind.
TEST(Requester, GoesOnForLongerThanNumbersLast) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "eight million packets are too much for a sanitizer";
#endif
  Sender sender(selective());
  Work work;
  std::array<std::byte, wire::kMaxHeaderBytes + kMtu> out;
  constexpr std::int32_t kAtOnce = 64;
  constexpr std::int32_t kPackets = (1 << 23) + 5 * kAtOnce;
  for (std::int32_t number = 0; number < kPackets; number += kAtOnce) {
    for (std::int32_t i = 0; i < kAtOnce; ++i) {
      sender.requester.post(work);
      ASSERT_NE(sender.requester.next(sender.now, out), 0U) << number + i;
    }
    ASSERT_EQ(sender.requester.under_way(), 64U) << number;
    sender.acknowledge(number + kAtOnce - 1);
    ASSERT_FALSE(sender.requester.busy()) << number;
  }
}

// It would be dropped without a NAK.
TEST(Requester, SendsNothingThatIsTooFarBehindAGap) {
  Sender sender(selective());
  sender.post(WorkKind::kSend, 2000 * kMtu);
  std::int32_t last = -1;
  for (int i = 0; i < 100; ++i) {
    const auto packets = sender.packets();
    if (packets.empty()) break;
    for (const Sent& sent : packets) last = std::max(last, sent.packet.psn.since(kFirstPsn));
    sender.nak(Nak::kSequence, last, 0);  // all but the first, of which it says nothing
  }
  EXPECT_EQ(last, static_cast<std::int32_t>(kMaxHeld) - 1);
}

}  // namespace
}  // namespace weft::transport::testing
