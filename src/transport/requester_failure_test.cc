// SPDX-License-Identifier: BSD-2-Clause
// How does work end that the peer refuses, cannot do, or does not answer?
#include <gtest/gtest.h>

#include "test_flow.h"

namespace weft::transport::testing {
namespace {

using work::CompletionStatus;
using work::Ended;
using work::kMaxWorkSges;
using work::Segment;
using work::Work;
using work::WorkKind;

constexpr std::size_t kPart = 64 * kMtu;  // of a long read, that is asked for at once

// Work number 0, of packets 0 to 63, which makes room for 128.
void widen(Sender& sender) {
  sender.post(WorkKind::kSend, kPart);
  EXPECT_EQ(sender.packets().size(), 64U);
  sender.acknowledge(63);
  EXPECT_EQ(sender.ended_now(), "0 ok");
  EXPECT_GE(sender.requester.window().size(), 128U);
}

void answer_all(Sender& sender, std::int32_t first, std::int32_t count) {
  for (std::int32_t i = 0; i < count; ++i)
    sender.answer(Operation::kReadResponseMiddle, first + i, kMtu);
}

TEST(FailingRequester, TellsWhyAPeerRefused) {
  const struct {
    Nak code;
    const char* ended;
  } kRows[] = {{Nak::kInvalidRequest, "0 invalid, 1 flushed"},
               {Nak::kRemoteAccess, "0 access, 1 flushed"},
               {Nak::kRemoteOperational, "0 operational, 1 flushed"},
               {static_cast<Nak>(4), "0 invalid, 1 flushed"},
               {Nak::kBeginAgain, "0 invalid, 1 flushed"},
               {static_cast<Nak>(15), "0 invalid, 1 flushed"},
               {Nak::kRefusal, "0 access, 1 flushed"},
               {static_cast<Nak>(0x1F), "0 access/15, 1 flushed"}};
  for (const auto& row : kRows) {
    for (const WorkKind kind : {WorkKind::kWrite, WorkKind::kRead, WorkKind::kFetchAdd}) {
      Sender sender(connection());
      sender.post(kind, 8);
      sender.post(WorkKind::kSend, 8);
      sender.packets();
      sender.nak(row.code, 0);
      EXPECT_EQ(sender.ended_now(), row.ended);
      EXPECT_TRUE(sender.requester.failed());
      EXPECT_EQ(sender.requester.deadline(), Time::max());
      sender.post(WorkKind::kSend, 8);
      EXPECT_EQ(sender.ended_now(), "2 flushed");
      EXPECT_EQ(sender.sends(), "");
    }
  }
}

TEST(FailingRequester, OfWeftLearnsWhichRuleMakesARequestInvalid) {
  for (const Settings& settings : {connection(), selective()}) {
    Sender sender(settings);
    sender.post(WorkKind::kWrite, 8);
    sender.packets();
    sender.nak(static_cast<Nak>(static_cast<unsigned>(Nak::kInvalidByRule) + 7), 0);
    EXPECT_EQ(sender.ended_now(), settings.selective ? "0 invalid/7" : "0 invalid");
  }
}

TEST(FailingRequester, KnowsThatWhatCameBeforeARefusalWasDone) {
  Sender sender(connection());
  for (int i = 0; i < 3; ++i) sender.post(WorkKind::kSend, 10);
  sender.packets();
  sender.nak(Nak::kInvalidRequest, 1);
  EXPECT_EQ(sender.ended_now(), "0 ok, 1 invalid, 2 flushed");
}

TEST(FailingRequester, OfDatagramsAgreesOnNewNumbersBehindARefusal) {
  Sender sender(datagrams());
  sender.post(WorkKind::kSend, 10);
  sender.post(WorkKind::kWrite, 600);
  sender.post(WorkKind::kSend, 11);
  sender.post(WorkKind::kFetchAdd, 8);
  EXPECT_EQ(sender.sends(),
            "send-only 0 [10], write-first 1 @0+600 [256], write-middle 2 [256], "
            "write-last 3 [88], send-only 4 [11], add 5");
  sender.nak(static_cast<Nak>(0x15), 1);
  EXPECT_EQ(sender.ended_now(), "0 ok, 1 access/5");
  EXPECT_EQ(sender.sends(), "resync 6") << "nothing goes before they are agreed on";
  sender.acknowledge(3);
  sender.nak(Nak::kSequence, 4, 1);
  sender.nak(static_cast<Nak>(0x15), 1);
  EXPECT_EQ(sender.sends(), "") << "old packets still come in";
  sender.wait();
  EXPECT_EQ(sender.sends(), "resync 6?");
  sender.acknowledge(6);
  EXPECT_EQ(sender.sends(), "send-only 7 [11], add 8");
  sender.value(8, 77);
  EXPECT_EQ(sender.ended_now(), "2 ok, 3 ok");
  EXPECT_EQ(sender.original, 77U);
  EXPECT_EQ(sender.requester.deadline(), Time::max());
}

TEST(FailingRequester, OfDatagramsBeginsAMessageAgainThatThePeerHasGivenUp) {
  Sender sender(datagrams());
  sender.post(WorkKind::kSend, 10);
  sender.post(WorkKind::kSend, 600);
  sender.post(WorkKind::kSend, 11);
  EXPECT_EQ(sender.sends(),
            "send-only 0 [10], send-first 1 [256], send-middle 2 [256], send-last 3 [88], "
            "send-only 4 [11]?");
  sender.acknowledge(1);
  sender.nak(Nak::kBeginAgain, 2);
  sender.nak(Nak::kBeginAgain, 2);
  EXPECT_EQ(sender.ended_now(), "0 ok");
  EXPECT_EQ(sender.sends(), "resync 5");
  sender.nak(Nak::kBeginAgain, 2);
  sender.acknowledge(5);
  EXPECT_EQ(sender.sends(),
            "send-first 6 [256], send-middle 7 [256], send-last 8 [88], send-only 9 [11]?");
  sender.acknowledge(9);
  EXPECT_EQ(sender.ended_now(), "1 ok, 2 ok");
  EXPECT_EQ(sender.requester.deadline(), Time::max());
}

TEST(FailingRequester, OfDatagramsBeginsAMessageAgainOfWhichItHasNotSentAll) {
  Settings settings = datagrams();
  settings.max_window = 2;
  Sender sender(settings);
  sender.post(WorkKind::kSend, 600);
  EXPECT_EQ(sender.sends(), "send-first 0 [256], send-middle 1 [256]?");
  sender.nak(Nak::kBeginAgain, 1);
  EXPECT_EQ(sender.sends(), "resync 2");
  sender.acknowledge(2);
  EXPECT_EQ(sender.sends(), "send-first 3 [256], send-middle 4 [256]?");
}

// Nothing else has a beginning to go back to.
TEST(FailingRequester, OfDatagramsBeginsOnlyMessagesAgain) {
  for (const WorkKind kind : {WorkKind::kWrite, WorkKind::kRead, WorkKind::kFetchAdd}) {
    Sender sender(datagrams());
    sender.post(kind, 8);
    sender.packets();
    sender.nak(Nak::kBeginAgain, 0);
    EXPECT_EQ(sender.ended_now(), "0 invalid");
  }
  Sender sender(datagrams());
  sender.post(WorkKind::kWrite, 8);
  sender.post(WorkKind::kWrite, 8);
  sender.packets();
  sender.nak(Nak::kInvalidRequest, 0);
  EXPECT_EQ(sender.sends(), "resync 2");
  sender.nak(Nak::kBeginAgain, 2);
  EXPECT_EQ(sender.ended_now(), "0 invalid");
  EXPECT_EQ(sender.sends(), "resync 3");
}

TEST(FailingRequester, OfDatagramsDoesNotSendTheRestOfWhatIsRefused) {
  Settings settings = datagrams();
  settings.max_window = 2;
  Sender sender(settings);
  sender.post(WorkKind::kSend, 2000);
  EXPECT_EQ(sender.sends(), "send-first 0 [256], send-middle 1 [256]?");
  sender.nak(Nak::kInvalidRequest, 0);
  EXPECT_EQ(sender.ended_now(), "0 invalid");
  EXPECT_EQ(sender.sends(), "resync 2?");
}

// The packets that were not sent have no numbers: others get them.
TEST(FailingRequester, OfDatagramsUsesTheNumbersOfWhatIsNotSent) {
  Settings settings = datagrams();
  settings.max_window = 3;
  Sender sender(settings);
  sender.post(WorkKind::kRead, 10);
  sender.post(WorkKind::kSend, 2000);
  sender.post(WorkKind::kRead, 20);
  EXPECT_EQ(sender.sends(), "read 0 @0+10, send-first 1 [256], send-middle 2 [256]?");
  sender.nak(Nak::kInvalidRequest, 1);
  EXPECT_EQ(sender.packets(1).at(0).operation(), Operation::kResync);
  sender.packets();
  sender.wait();
  EXPECT_EQ(sender.sends(), "read 0 @0+10, resync 3?") << "it was lost";
  sender.acknowledge(3);
  EXPECT_EQ(sender.sends(), "read 0 @0+10, read 4 @0+20");
  sender.answer(Operation::kReadResponseOnly, 4, 20);
  sender.answer(Operation::kReadResponseOnly, 0, 10);
  EXPECT_EQ(sender.ended_now(), "0 ok, 1 invalid, 2 ok");
}

// Nothing of the old numbers goes any more, and no time is measured with them.
TEST(FailingRequester, OfDatagramsForgetsWhatWasMissingAndMeasured) {
  Sender sender(datagrams());
  sender.post(WorkKind::kWrite, 10);
  sender.post(WorkKind::kWrite, 10);
  sender.post(WorkKind::kFetchAdd, 8);
  sender.packets();
  sender.nak(Nak::kSequence, 1, 2);
  sender.now += std::chrono::milliseconds(3);
  sender.nak(Nak::kRemoteAccess, 0);
  EXPECT_EQ(sender.sends(), "resync 3");
  sender.now += std::chrono::milliseconds(3);
  sender.acknowledge(3);
  EXPECT_EQ(sender.requester.window().round_trip(), Duration::zero());
  EXPECT_EQ(sender.sends(), "write-only 4 @0+10 [10], add 5");
}

TEST(FailingRequester, OfDatagramsIsRefusedTwice) {
  Sender sender(datagrams());
  for (int i = 0; i < 3; ++i) sender.post(WorkKind::kWrite, 10);
  sender.packets();
  sender.nak(Nak::kRemoteAccess, 0);
  sender.packets();
  sender.acknowledge(3);
  EXPECT_EQ(sender.sends(), "write-only 4 @0+10 [10], write-only 5 @0+10 [10]?");
  sender.nak(Nak::kRemoteAccess, 4);
  EXPECT_EQ(sender.sends(), "resync 6");
  sender.acknowledge(6);
  EXPECT_EQ(sender.sends(), "write-only 7 @0+10 [10]?");
  sender.acknowledge(7);
  EXPECT_EQ(sender.ended_now(), "0 access, 1 access, 2 ok");
}

// An earlier read still waits for its answers, with its old numbers.
TEST(FailingRequester, OfDatagramsGoesOnWaitingForAReadBeforeARefusal) {
  Sender sender(datagrams());
  sender.post(WorkKind::kRead, 300);
  sender.post(WorkKind::kWrite, 10);
  sender.packets();
  sender.nak(Nak::kRemoteAccess, 2);
  EXPECT_EQ(sender.ended_now(), "");
  EXPECT_EQ(sender.sends(), "resync 3?");
  sender.acknowledge(3);
  EXPECT_EQ(sender.sends(), "read 0 @0+300");
  sender.answer(Operation::kReadResponseFirst, 0, kMtu);
  sender.answer(Operation::kReadResponseLast, 1, 44);
  EXPECT_EQ(sender.ended_now(), "0 ok, 1 access");
}

// Others behind it have been carried out; the next one may be lost, and is what has to go again.
TEST(FailingRequester, OfDatagramsLosesAReadAlone) {
  Sender sender(datagrams());
  sender.post(WorkKind::kRead, 300);
  sender.post(WorkKind::kSend, 10);
  EXPECT_EQ(sender.sends(), "read 0 @0+300, send-only 2 [10]?");
  sender.nak(Nak::kRemoteOperational, 1);
  EXPECT_EQ(sender.ended_now(), "0 operational");
  sender.wait();
  EXPECT_EQ(sender.sends(), "send-only 2 [10]?");
  sender.acknowledge(2);
  EXPECT_EQ(sender.ended_now(), "1 ok");
}

TEST(FailingRequester, OfDatagramsHearsWhichRuleForbidsTheRestOfARead) {
  Sender sender(datagrams());
  sender.post(WorkKind::kRead, 300);
  sender.post(WorkKind::kSend, 10);
  sender.packets();
  sender.answer(Operation::kReadResponseFirst, 0, kMtu);
  sender.nak(Nak::kRemoteOperational, 1, kReadLostByRule | 9);
  EXPECT_EQ(sender.ended_now(), "0 access/9");
  sender.acknowledge(2);
  EXPECT_EQ(sender.ended_now(), "1 ok");
  EXPECT_EQ(sender.sends(), "") << "the numbers go on";
}

// Any other number of a message, however large, says that the memory has gone.
TEST(FailingRequester, OfDatagramsTakesNoMessageNumberForARule) {
  Sender sender(datagrams());
  sender.post(WorkKind::kRead, 300);
  sender.packets();
  sender.answer(Operation::kReadResponseFirst, 0, kMtu);
  sender.nak(Nak::kRemoteOperational, 1, kReadLostByRule | 0x12349);
  EXPECT_EQ(sender.ended_now(), "0 operational");
}

// The peer waits for the request of the second part, which got lost.
TEST(FailingRequester, OfDatagramsGoesOnWithThePartsOfALostRead) {
  Sender sender(datagrams());
  widen(sender);
  sender.post(WorkKind::kRead, 2 * kPart);
  sender.post(WorkKind::kSend, 10);
  EXPECT_EQ(sender.sends(), "read 64 @0+16384, read 128 @16384+16384");
  sender.nak(Nak::kRemoteOperational, 67);
  EXPECT_EQ(sender.sends(), "send-only 192 [10]?");
  sender.nak(Nak::kSequence, 128, 64);
  EXPECT_EQ(sender.sends(), "read 128 @16384+16384");
  EXPECT_EQ(sender.ended_now(), "");
  answer_all(sender, 128, 64);
  sender.acknowledge(192);
  EXPECT_EQ(sender.ended_now(), "1 operational, 2 ok");
}

TEST(FailingRequester, OfDatagramsAsksForNoMorePartsOfALostRead) {
  Settings settings = datagrams();
  settings.max_reads = 1;
  Sender sender(settings);
  sender.post(WorkKind::kRead, 10 * kPart);
  sender.post(WorkKind::kSend, 10);
  EXPECT_EQ(sender.sends(), "read 0 @0+16384");
  sender.nak(Nak::kRemoteOperational, 3);
  EXPECT_EQ(sender.ended_now(), "0 operational");
  EXPECT_EQ(sender.sends(), "send-only 64 [10]?");
  sender.acknowledge(64);
  EXPECT_EQ(sender.ended_now(), "1 ok");
}

TEST(FailingRequester, AsksForNoMorePartsOfARefusedRead) {
  Sender sender(datagrams());
  widen(sender);
  sender.post(WorkKind::kRead, 4 * kPart);
  sender.post(WorkKind::kFetchAdd, 8);
  EXPECT_EQ(sender.packets().size(), 2U);
  sender.nak(Nak::kRemoteAccess, 64);
  EXPECT_EQ(sender.ended_now(), "1 access");
  EXPECT_EQ(sender.sends(), "resync 192");
  sender.acknowledge(192);
  EXPECT_EQ(sender.sends(), "add 193");
  sender.value(193, 1);
  EXPECT_EQ(sender.ended_now(), "2 ok");
}

// Its answer said that what follows was accepted; a peer that says otherwise gets nothing twice.
TEST(FailingRequester, BelievesNoRefusalOfWhatWasAcknowledged) {
  Sender sender(datagrams());
  sender.post(WorkKind::kRead, 10);
  sender.post(WorkKind::kFetchAdd, 8);
  sender.packets();
  sender.value(1, 5);
  sender.nak(Nak::kRemoteAccess, 0);
  EXPECT_EQ(sender.sends(), "read 0 @0+10");
  sender.answer(Operation::kReadResponseOnly, 0, 10);
  EXPECT_EQ(sender.ended_now(), "0 ok, 1 ok");
}

TEST(FailingRequester, DoesNotCallAReadWholeWhoseFirstPartNeverCame) {
  Sender sender(connection());
  widen(sender);
  sender.post(WorkKind::kRead, 2 * kPart);
  EXPECT_EQ(sender.packets().size(), 2U);
  answer_all(sender, 128, 64);
  sender.requester.fail(CompletionStatus::kRetryExceeded);
  EXPECT_EQ(sender.ended_now(), "1 retries");
}

TEST(FailingRequester, EndsOneWorkWithTheReasonAndOthersAsFlushed) {
  Sender sender(connection());
  sender.post(WorkKind::kRead, 600);
  sender.post(WorkKind::kSend, 10);
  sender.packets();
  sender.acknowledge(3);
  sender.post(WorkKind::kSend, 10);
  sender.requester.fail(CompletionStatus::kRemoteOperation);
  sender.requester.fail(CompletionStatus::kRetryExceeded);
  EXPECT_EQ(sender.ended_now(), "0 operational, 1 ok, 2 flushed");
}

TEST(FailingRequester, EndsWorkInItsOrderThoughMoreIsPostedMeanwhile) {
  Sender sender(connection());
  for (int i = 0; i < 3; ++i) sender.post(WorkKind::kSend, 10);
  bool posted = false;
  sender.on_end = [&](const Ended&) {
    if (!std::exchange(posted, true)) sender.post(WorkKind::kSend, 10);
  };
  sender.requester.fail(CompletionStatus::kRetryExceeded);
  EXPECT_EQ(sender.ended_now(), "0 retries, 1 flushed, 2 flushed, 3 flushed");
  EXPECT_FALSE(sender.requester.busy());
}

TEST(FailingRequester, TakesWorkWhileItReportsTheEndOfOther) {
  Sender sender(connection());
  sender.post(WorkKind::kSend, 10);
  sender.packets();
  sender.on_end = [&](const Ended&) {
    sender.on_end = nullptr;
    sender.post(WorkKind::kSend, 11);
  };
  sender.acknowledge(0);
  EXPECT_EQ(sender.sends(), "send-only 1 [11]?");
  sender.acknowledge(1);
  EXPECT_EQ(sender.ended_now(), "0 ok, 1 ok");
}

TEST(FailingRequester, IgnoresWhatIsOfAnotherTransport) {
  Sender sender(connection());
  sender.post(WorkKind::kSend, 10);
  sender.packets();
  for (const auto kind : {wire::Transport::kReliableDatagram, wire::Transport::kExtendedReliable}) {
    wire::Packet packet;
    packet.opcode = wire::opcode_of(kind, Operation::kAcknowledge);
    packet.psn = psn(0);
    sender.take(packet);
  }
  EXPECT_EQ(sender.ended_now(), "");
}

TEST(FailingRequester, ReportsAnSgeThatIsGoneWhenItsPacketGoesAgain) {
  for (const Settings& settings : {connection(), selective(), datagrams()}) {
    Sender sender(settings);
    sender.memory.gathers = 2;
    sender.post(WorkKind::kSend, 10);
    sender.post(WorkKind::kWrite, 11);
    EXPECT_EQ(sender.packets().size(), 2U);
    sender.wait();
    EXPECT_EQ(sender.ended_now(), "");
    EXPECT_EQ(sender.sends(), "");
    EXPECT_EQ(sender.ended_now(), "0 protection, 1 flushed");
    EXPECT_TRUE(sender.requester.failed()) << "the peer may have that packet, or may not";
    EXPECT_EQ(sender.requester.deadline(), Time::max());
  }
}

TEST(FailingRequester, NamesTheWorkWhoseSgeIsGoneAmongOthers) {
  Sender sender(datagrams());
  sender.memory.gathers = 2;
  for (int i = 0; i < 4; ++i) sender.post(WorkKind::kSend, 10);
  EXPECT_EQ(sender.packets().size(), 2U);
  EXPECT_EQ(sender.ended_now(), "0 flushed, 1 flushed, 2 protection, 3 flushed");
}

TEST(FailingRequester, OfAConnectionLetsWorkEndBeforeThatWhoseSgeIsGone) {
  for (const Settings& settings : {connection(), selective()}) {
    Sender sender(settings);
    sender.memory.gathers = 2;
    for (int i = 0; i < 4; ++i) sender.post(WorkKind::kSend, 10);
    EXPECT_EQ(sender.packets().size(), 2U);
    EXPECT_EQ(sender.ended_now(), "");
    EXPECT_NE(sender.requester.due(), Time::min()) << "there is nothing to send";
    sender.memory.gathers = PlainMemory::kForEver;
    sender.post(WorkKind::kSend, 10);
    EXPECT_EQ(sender.sends(), "");
    sender.acknowledge(0);
    EXPECT_EQ(sender.ended_now(), "0 ok");
    sender.acknowledge(1);
    EXPECT_EQ(sender.ended_now(), "1 ok, 2 protection, 3 flushed, 4 flushed");
    EXPECT_TRUE(sender.requester.failed());
  }
}

TEST(FailingRequester, SendsNothingOfRefusedWork) {
  for (const Settings& settings : {connection(), selective()}) {
    Sender sender(settings);
    sender.post(WorkKind::kSend, 10);
    sender.requester.post(sender.work(WorkKind::kRead, 10), CompletionStatus::kLocalLength);
    sender.requester.post(sender.work(WorkKind::kSend, 10), CompletionStatus::kLocalOperation);
    EXPECT_EQ(sender.packets().size(), 1U);
    EXPECT_EQ(sender.ended_now(), "");
    sender.acknowledge(0);
    EXPECT_EQ(sender.ended_now(), "0 ok, 1 length, 2 flushed");
  }
}

TEST(FailingRequester, OfAConnectionReportsSilenceAsTheFirstError) {
  Sender sender(connection());
  sender.memory.gathers = 1;
  for (int i = 0; i < 3; ++i) sender.post(WorkKind::kSend, 10);
  EXPECT_EQ(sender.packets().size(), 1U);
  sender.memory.gathers = PlainMemory::kForEver;
  sender.requester.fail(CompletionStatus::kRetryExceeded);
  EXPECT_EQ(sender.ended_now(), "0 retries, 1 flushed, 2 flushed");
}

TEST(FailingRequester, TouchesNoSgeOfWorkWithoutBytes) {
  Sender sender(connection());
  sender.memory.gathers = 0;
  sender.post(WorkKind::kSend, 0);
  sender.post(WorkKind::kFetchAdd, 8);
  EXPECT_EQ(sender.sends(), "send-only 0, add 1");
}

TEST(FailingRequester, OfDatagramsGoesOnBehindAReadWhoseSgeIsGone) {
  Sender sender(datagrams());
  sender.memory.scatters = 1;
  sender.post(WorkKind::kRead, 3 * kMtu);
  sender.post(WorkKind::kSend, 10);
  sender.packets();
  answer_all(sender, 0, 1);
  EXPECT_EQ(sender.ended_now(), "");
  answer_all(sender, 1, 1);
  EXPECT_EQ(sender.ended_now(), "0 protection");
  sender.answer(Operation::kReadResponseLast, 2, kMtu);
  sender.acknowledge(3);
  EXPECT_EQ(sender.ended_now(), "1 ok");
  EXPECT_FALSE(sender.requester.failed());
}

TEST(FailingRequester, OfDatagramsReportsALongReadWhoseSgeIsGoneOnce) {
  Sender sender(datagrams());
  widen(sender);
  sender.memory.scatters = 1;
  sender.post(WorkKind::kRead, 2 * kPart);
  EXPECT_EQ(sender.packets().size(), 2U);
  answer_all(sender, 64, 2);
  sender.memory.scatters = PlainMemory::kForEver;
  answer_all(sender, 128, 63);
  EXPECT_EQ(sender.ended_now(), "");
  sender.answer(Operation::kReadResponseLast, 191, kMtu);
  EXPECT_EQ(sender.ended_now(), "1 protection");
  EXPECT_FALSE(sender.requester.failed());
}

TEST(FailingRequester, EndsAConnectionWhereAnSgeOfAReadIsGone) {
  Sender sender(connection());
  sender.memory.scatters = 0;
  sender.post(WorkKind::kRead, 10);
  sender.post(WorkKind::kSend, 10);
  sender.packets();
  sender.answer(Operation::kReadResponseOnly, 0, 10);
  EXPECT_EQ(sender.ended_now(), "0 protection, 1 flushed");
}

TEST(FailingRequester, LetsWorkEndBeforeAReadOfWhichAnSgeIsGone) {
  Sender sender(connection());
  sender.memory.scatters = 0;
  sender.post(WorkKind::kSend, 10);
  sender.post(WorkKind::kRead, 10);
  sender.packets();
  sender.answer(Operation::kReadResponseOnly, 1, 10);
  EXPECT_EQ(sender.ended_now(), "0 ok, 1 protection");
}

TEST(FailingRequester, NamesTheKeyOfAnSgeWheneverItIsTouched) {
  Sender sender(connection());
  Work work = sender.work(WorkKind::kSend, 10);
  const Segment sge{sender.buffer.data(), 10, 0x1234};
  work.sges = {&sge, 1};
  sender.requester.post(work);
  for (int i = 0; i < 2; ++i) {
    sender.memory.key = 0;
    EXPECT_EQ(sender.packets().size(), 1U);
    EXPECT_EQ(sender.memory.key, 0x1234U);
    sender.wait();
  }
}

TEST(FailingRequester, SendsNoMoreThanNumbersAllowBehindAReadThatIsNeverAnswered) {
  Settings settings = connection();
  Sender sender(settings);
  sender.post(WorkKind::kRead, 10);
  Work endless = sender.work(WorkKind::kSend, 0);
  const Segment sge{sender.buffer.data(), sender.buffer.size()};
  const std::vector<Segment> sges(kMaxWorkSges, sge);
  endless.sges = sges;
  endless.length = kMaxWorkSges * sge.length;
  for (int i = 0; i < 4; ++i) sender.requester.post(endless);
  std::int32_t last = 0;
  for (;;) {
    const auto all = sender.packets();
    const std::int32_t now_last = all.empty() ? last : all.back().packet.psn.since(kFirstPsn);
    if (now_last <= last) break;
    last = now_last;
    sender.acknowledge(last);
  }
  EXPECT_LT(last, 1 << 20);
  sender.answer(Operation::kReadResponseOnly, 0, 10);
  EXPECT_EQ(sender.ended_now().substr(0, 4), "0 ok");
  EXPECT_FALSE(sender.packets().empty());
}

}  // namespace
}  // namespace weft::transport::testing
