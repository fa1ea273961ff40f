// SPDX-License-Identifier: BSD-2-Clause
// What follows when a request is not carried out?
#include <gtest/gtest.h>

#include "test_flow.h"

namespace weft::transport::testing {
namespace {

using work::RequestVerdict;

constexpr RequestVerdict kNotReady{RequestVerdict::Kind::kNotReady, 0};
constexpr RequestVerdict kAccess{RequestVerdict::Kind::kAccess, 5};
constexpr RequestVerdict kOperational{RequestVerdict::Kind::kOperational, 0};

TEST(RefusingResponder, SaysWhy) {
  const struct {
    RequestVerdict verdict;
    const char* connection;
    const char* datagrams;
  } kRows[] = {{work::kInvalidRequest, "nak61 0 #0", "nak61 0 #0"},
               {{RequestVerdict::Kind::kAccess, 0}, "nak62 0 #0", "nak62 0 #0"},
               {kAccess, "nak62 0 #0", "nak75 0 #0"},
               {{RequestVerdict::Kind::kAccess, 15}, "nak62 0 #0", "nak7f 0 #0"},
               {kOperational, "nak63 0 #0", "nak63 0 #0"}};
  for (const auto& row : kRows) {
    for (const bool datagram : {false, true}) {
      Receiver receiver(datagram ? datagrams() : connection());
      receiver.memory.atomics = row.verdict;
      EXPECT_EQ(receiver.hears(receiver.add(0)), datagram ? row.datagrams : row.connection);
      EXPECT_EQ(receiver.responder.failed(), !datagram);
      EXPECT_EQ(receiver.stats.of(Stat::kRefusedRequests), 1U);
    }
  }
}

TEST(RefusingResponder, CarriesOutNothingBehindIt) {
  for (const bool datagram : {false, true}) {
    Receiver receiver(datagram ? datagrams() : connection());
    receiver.memory.atomics = work::kInvalidRequest;
    EXPECT_EQ(receiver.hears(receiver.add(0)), "nak61 0 #0");
    receiver.memory.atomics = {};
    EXPECT_EQ(receiver.hears(Operation::kSendOnly, 1, 10), "");
    EXPECT_EQ(receiver.hears(receiver.read(2, 10)), "");
    EXPECT_TRUE(receiver.memory.messages.empty());
    // A requester that repeats the request has not received the NAK.
    EXPECT_EQ(receiver.hears(receiver.add(0)), "nak61 0 #0");
    EXPECT_EQ(receiver.memory.changed, 0U);
  }
}

TEST(RefusingResponder, BreaksTheMessageThatHadBegun) {
  Receiver receiver(connection());
  receiver.take(Operation::kSendFirst, 0, kMtu);
  receiver.memory.goes_on = work::kInvalidRequest;
  EXPECT_EQ(receiver.hears(Operation::kSendLast, 1, 10), "nak61 1 #0");
  EXPECT_EQ(receiver.memory.broken, 1U);
}

TEST(RefusingResponder, RefusesAMessageThatInvalidatesAKeyThatItMayNot) {
  for (const bool only : {true, false}) {
    Receiver receiver(connection());
    receiver.memory.invalidates = kAccess;
    int number = 0;
    if (!only) receiver.take(Operation::kSendFirst, number++, kMtu);
    const auto last = only ? Operation::kSendOnlyInvalidate : Operation::kSendLastInvalidate;
    EXPECT_EQ(receiver.hears(last, number, 10), only ? "nak62 0 #0" : "nak62 1 #0");
    EXPECT_TRUE(receiver.memory.messages.empty());
    EXPECT_EQ(receiver.memory.broken, 1U);
    EXPECT_EQ(receiver.stats.of(Stat::kRefusedRequests), 1U);
  }
}

Settings extended() {
  Settings settings = connection();
  settings.kind = wire::Transport::kExtendedReliable;
  return settings;
}

// Also of those that take no receive: it says whose memory is meant.
TEST(RefusingResponder, RefusesWhateverNamesAnUnknownSharedReceiveQueue) {
  Receiver known(extended());
  for (wire::Packet packet :
       {known.request(Operation::kSendOnly, 0, 10), known.request(Operation::kWriteOnly, 0, 10),
        known.read(0, 10), known.add(0)}) {
    for (const std::uint32_t number : {0U, Memory::kSharedReceive + 1, 0xFF'FFFFU}) {
      Receiver receiver(extended());
      packet.shared_receive = number;
      EXPECT_EQ(receiver.hears(packet), "nak61 0 #0");
      EXPECT_EQ(receiver.stats.of(Stat::kRefusedRequests), 1U);
      EXPECT_TRUE(receiver.memory.ends.empty());
      EXPECT_EQ(receiver.memory.changed, 0U);
    }
  }
}

TEST(RefusingResponder, RefusesAMessageThatNamesAnotherSharedReceiveQueueThanItsBeginning) {
  Receiver receiver(extended());
  receiver.take(Operation::kSendFirst, 0, kMtu);
  wire::Packet packet = receiver.request(Operation::kSendLast, 1, 10);
  packet.shared_receive = Memory::kSharedReceive + 1;
  EXPECT_EQ(receiver.hears(packet), "nak61 1 #0");
  EXPECT_EQ(receiver.memory.broken, 1U);
}

TEST(RefusingResponder, BreaksAMessageThatNeverEnds) {
  Memory memory;
  {
    Receiver receiver(connection());
    Responder responder(connection(), memory);
    responder.take(receiver.request(Operation::kSendFirst, 0, kMtu), {});
  }
  EXPECT_EQ(memory.broken, 1U);
}

TEST(RefusingResponder, AnswersWhatCameBeforeItFirst) {
  Receiver receiver(connection());
  receiver.take(Operation::kSendOnly, 0, 10);
  receiver.take(receiver.read(1, 300));
  receiver.take(Operation::kSendLast, 3, 10);
  EXPECT_EQ(receiver.says(), "first 1 #2 [256], last 2 #2 [44], nak61 3 #2");
}

TEST(RefusingResponder, OfDatagramsGoesOnWithTheNumbersOfAResync) {
  Receiver receiver(datagrams());
  receiver.take(Operation::kSendOnly, 0, 10);
  receiver.take(Operation::kSendLast, 1, 10);
  receiver.take(Operation::kSendOnly, 3, 10);
  EXPECT_EQ(receiver.says(), "nak61 1 #1");
  const wire::Packet resync = receiver.request(Operation::kResync, 9);
  EXPECT_EQ(receiver.hears(resync), "ack 9 #1");
  receiver.take(Operation::kSendOnly, 10, 11);
  EXPECT_EQ(receiver.memory.messages.size(), 2U);
  // Those on the way are as old as they look, and a second one does nothing.
  EXPECT_EQ(receiver.hears(resync), "ack 10 #2");
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 4, 10), "ack 10 #2");
  receiver.take(Operation::kSendOnly, 11, 12);
  EXPECT_EQ(receiver.memory.messages.size(), 3U);
}

TEST(RefusingResponder, OfDatagramsTakesANewRefusalBehindAResync) {
  Receiver receiver(datagrams());
  receiver.take(Operation::kSendLast, 0, 10);
  receiver.take(Operation::kResync, 4);
  EXPECT_EQ(receiver.says(), "ack 4 #0");
  EXPECT_EQ(receiver.hears(Operation::kSendLast, 5, 10), "nak61 5 #0");
  EXPECT_EQ(receiver.hears(Operation::kResync, 4), "ack 4 #0");
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 6, 10), "") << "it is still refusing";
  EXPECT_EQ(receiver.hears(Operation::kResync, 7), "ack 7 #0");
}

TEST(RefusingResponder, OfDatagramsTakesAMessageThatItHasGivenUpFromItsBeginning) {
  Receiver receiver(datagrams());
  receiver.take(Operation::kSendFirst, 0, kMtu);
  receiver.memory.goes_on = {RequestVerdict::Kind::kGivenUp, 0};
  EXPECT_EQ(receiver.hears(Operation::kSendMiddle, 1, kMtu), "nak65 1 #0");
  EXPECT_EQ(receiver.memory.broken, 1U);
  receiver.memory.goes_on = {};
  EXPECT_EQ(receiver.hears(Operation::kSendLast, 2, 10), "") << "it is behind the refused one";
  EXPECT_EQ(receiver.hears(Operation::kResync, 3), "ack 3 #0");
  receiver.take(Operation::kSendFirst, 4, kMtu);
  receiver.take(Operation::kSendLast, 5, 10);
  ASSERT_EQ(receiver.memory.messages.size(), 1U);
  EXPECT_EQ(receiver.memory.messages[0].size(), kMtu + 10);
}

TEST(RefusingResponder, IgnoresAnUnneededResync) {
  Receiver receiver(datagrams());
  EXPECT_EQ(receiver.hears(Operation::kResync, 5), "");
  receiver.take(Operation::kSendOnly, 0, 10);
  EXPECT_EQ(receiver.memory.messages.size(), 1U);
}

// Others behind the read may have been carried out: it alone fails.
TEST(RefusingResponder, OfDatagramsLosesOneReadWhoseMemoryHasGone) {
  for (const bool at_once : {true, false}) {
    Receiver receiver(datagrams());
    (at_once ? receiver.memory.access : receiver.memory.reads) = kOperational;
    receiver.take(receiver.read(0, 600));
    receiver.memory.access = {};
    receiver.take(Operation::kSendOnly, 3, 10);
    EXPECT_EQ(receiver.says(), "nak63 0 #2") << at_once;
    EXPECT_EQ(receiver.memory.messages.size(), 1U);
    EXPECT_EQ(receiver.hears(receiver.read(0, 600)), "nak63 0 #2") << "it may not have heard";
    EXPECT_FALSE(receiver.responder.failed());
  }
}

// It was allowed when it arrived, and its region is disabled now.
TEST(RefusingResponder, SaysWhichRuleForbidsTheRestOfARead) {
  for (const auto& [settings, expected] : {std::pair{datagrams(), "nak63 1 #8388613"},
                                           {connection(), "nak62 1 #2"},
                                           {selective(), "nak75 1 #2"}}) {
    Receiver receiver(settings);
    receiver.take(receiver.read(0, 600));
    std::vector<std::byte> out(wire::kMaxHeaderBytes + kMtu);
    EXPECT_NE(receiver.responder.next(out), 0U) << "the first part of the answer";
    receiver.memory.reads = kAccess;
    receiver.take(Operation::kSendOnly, 3, 10);
    EXPECT_EQ(receiver.says(), expected);
    EXPECT_EQ(receiver.memory.messages.size(), 1U);
    EXPECT_EQ(receiver.responder.failed(), settings.kind != wire::Transport::kReliableDatagram);
  }
}

TEST(RefusingResponder, OfAConnectionEndsWithAReadWhoseMemoryHasGone) {
  Receiver receiver(connection());
  receiver.memory.reads = kOperational;
  receiver.take(receiver.read(0, 600));
  wire::Packet send = receiver.request(Operation::kSendOnly, 3, 10);
  send.ack_request = true;
  receiver.take(send);
  receiver.take(receiver.read(4, 1));
  EXPECT_EQ(receiver.says(), "nak63 0 #3");
  EXPECT_TRUE(receiver.responder.failed());
}

TEST(NotReadyResponder, AsksToBeTriedAgainAndDropsWhatFollows) {
  for (const bool weft : {false, true}) {
    Receiver receiver(weft ? selective() : connection());
    receiver.memory.begins = kNotReady;
    receiver.take(Operation::kSendOnly, 0, 10);
    receiver.take(Operation::kSendOnly, 1, 10);
    receiver.take(receiver.read(2, 10));
    EXPECT_EQ(receiver.says(), "rnr12 0 #0");
    EXPECT_EQ(receiver.hears(Operation::kSendOnly, 0, 10), "rnr12 0 #0");
    receiver.memory.begins = {};
    wire::Packet again = receiver.request(Operation::kSendOnly, 0, 10);
    again.ack_request = true;
    EXPECT_EQ(receiver.hears(again), "ack 0 #1");
    receiver.take(Operation::kSendOnly, 1, 10);
    EXPECT_EQ(receiver.memory.messages.size(), 2U);
  }
}

TEST(NotReadyResponder, ForgetsWhatItHadKept) {
  Receiver receiver(selective());
  receiver.take(Operation::kSendOnly, 1, 20);
  receiver.take(Operation::kSendOnly, 3, 20);
  receiver.memory.begins = kNotReady;
  receiver.take(Operation::kSendOnly, 0, 10);
  EXPECT_EQ(receiver.says(), "rnr12 0 #0");
  receiver.memory.begins = {};
  receiver.pass(std::chrono::milliseconds(10));
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 0, 10), "") << "nothing is missing";
  EXPECT_EQ(receiver.memory.messages.size(), 1U);
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 2, 12), "nak60 1 #1");
  receiver.take(Operation::kSendOnly, 1, 11);
  EXPECT_EQ(receiver.memory.messages.size(), 3U);
  EXPECT_EQ(receiver.memory.messages[1].size(), 11U);
}

TEST(NotReadyResponder, IsFoundByAKeptRequest) {
  Receiver receiver(selective());
  receiver.take(Operation::kSendOnly, 1, 20);
  receiver.take(Operation::kSendOnly, 2, 20);
  receiver.answers();
  receiver.memory.begins = kNotReady;
  receiver.take(receiver.add(0));
  EXPECT_EQ(receiver.says(), "value 0 #1 =0, rnr12 1 #1");
}

// The bytes of the last packet, too, wait for the receive.
TEST(NotReadyResponder, TakesTheReceiveForAnImmediateValueAtTheEndOfAWrite) {
  Receiver receiver(connection());
  const Bytes before = receiver.memory.bytes;
  receiver.memory.immediates = kNotReady;
  wire::Packet first = receiver.request(Operation::kWriteFirst, 0, kMtu);
  first.reth.length = kMtu + 10;
  first.reth.address += 1000;
  EXPECT_EQ(receiver.hears(first), "");
  EXPECT_EQ(receiver.hears(Operation::kWriteLastImmediate, 1, 10), "rnr12 1 #0");
  receiver.memory.immediates = {};
  receiver.take(Operation::kWriteLastImmediate, 1, 10);
  EXPECT_EQ(receiver.memory.writes_of, std::vector<std::uint64_t>{kMtu + 10});
  EXPECT_EQ(receiver.responder.messages(), 1U);
}

TEST(NotReadyResponder, NamesTheTimeThatItsOwnerWants) {
  Settings settings = connection();
  settings.rnr_timer = 0;
  Receiver receiver(settings);
  receiver.memory.begins = kNotReady;
  EXPECT_EQ(receiver.hears(Operation::kSendFirst, 0, kMtu), "rnr0 0 #0");
}

}  // namespace
}  // namespace weft::transport::testing
