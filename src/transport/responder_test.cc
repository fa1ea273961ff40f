// SPDX-License-Identifier: BSD-2-Clause
// How is a request carried out whose turn it is?
#include <gtest/gtest.h>

#include "test_flow.h"

namespace weft::transport::testing {
namespace {

wire::Packet asking(wire::Packet request) {
  request.ack_request = true;
  return request;
}

TEST(Responder, AnswersWhenAskedTo) {
  Receiver receiver(connection());
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 0, 10), "");
  EXPECT_FALSE(receiver.responder.ready());
  EXPECT_EQ(receiver.hears(asking(receiver.request(Operation::kSendOnly, 1, 10))), "ack 1 #2");
}

TEST(Responder, RestartsInTheMiddleOfAMessageWithPacketsOfAnotherSize) {
  Settings wide = selective();
  wide.path_mtu = 2 * kMtu;
  Receiver receiver(wide);
  receiver.take(receiver.read(0, 2 * kMtu));
  receiver.take(Operation::kSendFirst, 1, 2 * kMtu);
  receiver.take(Operation::kSendLast, 3, 2 * kMtu);
  EXPECT_EQ(receiver.responder.restart(psn(8), kMtu), psn(2));
  EXPECT_EQ(receiver.responder.settings().path_mtu, kMtu);
  EXPECT_EQ(receiver.says(), "") << "the peer asks for answers that it lacks";
  EXPECT_EQ(receiver.hears(Operation::kSendLast, 2, 2 * kMtu), "ack 7 #1") << "void";
  receiver.take(Operation::kSendMiddle, 8, kMtu);
  receiver.take(Operation::kSendLast, 9, kMtu);
  ASSERT_EQ(receiver.memory.messages.size(), 1U);
  EXPECT_EQ(receiver.memory.messages[0].size(), 4 * kMtu) << "of both sizes";
  EXPECT_EQ(receiver.hears(receiver.read(0, 2 * kMtu)), "") << "it was cut in another way";
  EXPECT_EQ(receiver.hears(receiver.read(10, 2 * kMtu)), "first 10 #3 [256], last 11 #3 [256]");
  EXPECT_EQ(receiver.responder.restart(psn(12), 2 * kMtu), psn(12));
  EXPECT_EQ(receiver.hears(receiver.read(12, 2 * kMtu)), "only 12 #4 [512]");
}

TEST(Responder, AnswersManyAtOnce) {
  Receiver receiver(connection());
  for (int i = 0; i < 20; ++i) receiver.take(asking(receiver.request(Operation::kSendOnly, i)));
  EXPECT_EQ(receiver.says(), "ack 19 #20");
}

TEST(Responder, NamesThePeerInItsAnswers) {
  Settings settings = datagrams();
  settings.destination = 0xABCDEF;
  settings.context = 0x123456;
  settings.pkey = 0x8001;
  Receiver receiver(settings);
  receiver.take(asking(receiver.request(Operation::kSendOnly, 0, 10)));
  receiver.take(receiver.read(1, 10));
  receiver.take(receiver.add(2));
  for (const Sent& sent : receiver.answers()) {
    EXPECT_EQ(sent.packet.destination, 0xABCDEFU);
    EXPECT_EQ(sent.packet.end_to_end_context, 0x123456U);
    EXPECT_EQ(sent.packet.pkey, 0x8001);
    EXPECT_EQ(sent.packet.syndrome, kNoCredits);
    EXPECT_FALSE(sent.packet.ack_request);
  }
}

// IBTA 9.7.5.1.5: with its last packet, and a read at once.
TEST(Responder, CountsMessagesWhenTheyEnd) {
  Receiver receiver(connection());
  EXPECT_EQ(receiver.hears(asking(receiver.request(Operation::kSendFirst, 0, kMtu))), "ack 0 #0");
  EXPECT_EQ(receiver.hears(asking(receiver.request(Operation::kSendMiddle, 1, kMtu))), "ack 1 #0");
  EXPECT_EQ(receiver.hears(asking(receiver.request(Operation::kSendLast, 2, 1))), "ack 2 #1");
  EXPECT_EQ(receiver.hears(asking(receiver.request(Operation::kWriteOnly, 3, 5))), "ack 3 #2");
  EXPECT_EQ(receiver.hears(receiver.read(4, 3 * kMtu)),
            "first 4 #3 [256], middle 5 [256], last 6 #3 [256]");
  EXPECT_EQ(receiver.hears(receiver.add(7)), "value 7 #4 =0");
  EXPECT_EQ(receiver.hears(receiver.read(8, 0)), "only 8 #5");
  EXPECT_EQ(receiver.responder.messages(), 5U);
}

TEST(Responder, HandsOnMessagesWhole) {
  const std::vector<std::pair<Operation, std::size_t>> kMessages[] = {
      {{Operation::kSendOnly, 0}},
      {{Operation::kSendOnly, kMtu}},
      {{Operation::kSendOnlyImmediate, 3}},
      {{Operation::kSendOnlyInvalidate, 3}},
      {{Operation::kSendFirst, kMtu}, {Operation::kSendLast, 1}},
      {{Operation::kSendFirst, kMtu}, {Operation::kSendMiddle, kMtu}, {Operation::kSendLast, kMtu}},
      {{Operation::kSendFirst, kMtu}, {Operation::kSendLastImmediate, 7}},
      {{Operation::kSendFirst, kMtu}, {Operation::kSendLastInvalidate, 7}}};
  Receiver receiver(connection());
  int number = 0;
  for (const auto& packets : kMessages) {
    Bytes whole;
    for (const auto& [operation, length] : packets) {
      wire::Packet packet = receiver.request(operation, number++, length);
      packet.immediate = packet.invalidate = 0x1234;
      packet.solicited = true;
      receiver.take(packet);
      whole.insert(whole.end(), packet.payload.begin(), packet.payload.end());
    }
    ASSERT_FALSE(receiver.memory.messages.empty());
    EXPECT_EQ(receiver.memory.messages.back(), whole);
    const work::MessageEnd& end = receiver.memory.ends.back();
    const Operation last = packets.back().first;
    EXPECT_EQ(end.has_immediate,
              last == Operation::kSendOnlyImmediate || last == Operation::kSendLastImmediate);
    EXPECT_EQ(end.invalidates,
              last == Operation::kSendOnlyInvalidate || last == Operation::kSendLastInvalidate);
    EXPECT_EQ(end.immediate, 0x1234U);
    EXPECT_EQ(end.invalidated, 0x1234U);
    EXPECT_TRUE(end.solicited);
  }
  EXPECT_EQ(receiver.memory.messages.size(), std::size(kMessages));
}

TEST(Responder, WritesWhereItIsTold) {
  Receiver receiver(connection());
  Bytes expected = receiver.memory.bytes;
  const auto write = [&](Operation operation, int number, std::size_t length, std::uint64_t at,
                         std::size_t whole) {
    wire::Packet packet = receiver.request(operation, number, length);
    packet.reth = {Memory::kAddress + 1000, Memory::kKey, static_cast<std::uint32_t>(whole)};
    receiver.take(packet);
    std::copy(packet.payload.begin(), packet.payload.end(),
              expected.begin() + static_cast<std::ptrdiff_t>(1000 + at));
  };
  write(Operation::kWriteFirst, 0, kMtu, 0, 2 * kMtu + 9);
  write(Operation::kWriteMiddle, 1, kMtu, kMtu, 0);
  EXPECT_TRUE(receiver.memory.writes_of.empty());
  write(Operation::kWriteLast, 2, 9, 2 * kMtu, 0);
  write(Operation::kWriteOnly, 3, 30, 0, 30);
  write(Operation::kWriteOnlyImmediate, 4, 0, 0, 0);
  EXPECT_EQ(receiver.memory.bytes, expected);
  EXPECT_EQ(receiver.memory.writes_of, (std::vector<std::uint64_t>{2 * kMtu + 9, 30, 0}));
  EXPECT_EQ(receiver.says(), "");
}

TEST(Responder, LetsTheTargetSayWhetherEmptyWritesAndReadsNeedAKey) {
  for (const Settings& kind : {connection(), datagrams()}) {
    for (const bool writes : {true, false}) {
      Receiver lenient(kind);
      Receiver strict(kind);
      lenient.memory.lenient = true;
      wire::Packet packet = writes ? lenient.request(Operation::kWriteOnly, 0) : lenient.read(0, 0);
      packet.reth = {1, 2, 0};
      lenient.take(packet);
      strict.take(packet);
      EXPECT_EQ(lenient.responder.messages(), 1U);
      EXPECT_EQ(strict.stats.of(Stat::kRefusedRequests), 1U);
    }
  }
}

TEST(Responder, ReadsWhatIsThereWhenItAnswers) {
  Receiver receiver(connection());
  receiver.take(receiver.read(0, 2 * kMtu + 5, 77));
  const auto answers = receiver.answers();
  EXPECT_EQ(text_of(answers), "first 0 #1 [256], middle 1 [256], last 2 #1 [5]");
  std::size_t at = 77;
  for (const Sent& sent : answers) {
    EXPECT_TRUE(std::equal(sent.packet.payload.begin(), sent.packet.payload.end(),
                           receiver.memory.bytes.begin() + static_cast<std::ptrdiff_t>(at)));
    at += sent.packet.payload.size();
  }
}

TEST(Responder, AddsAndSwapsOnce) {
  Receiver receiver(connection());
  EXPECT_EQ(receiver.hears(receiver.add(0)), "value 0 #1 =0");
  EXPECT_EQ(receiver.hears(receiver.add(1)), "value 1 #2 =1");
  wire::Packet swap = receiver.request(Operation::kCompareSwap, 2);
  swap.atomic = {Memory::kAddress, Memory::kKey, 50, 2};
  EXPECT_EQ(receiver.hears(swap), "value 2 #3 =2");
  EXPECT_EQ(receiver.memory.sum, 50U);
}

// An acknowledgement says that all before it has been answered.
TEST(Responder, AnswersInTheOrderOfNumbers) {
  Receiver receiver(connection());
  receiver.take(asking(receiver.request(Operation::kSendOnly, 0, 10)));
  receiver.take(receiver.read(1, 300));
  receiver.take(receiver.add(3));
  receiver.take(receiver.read(4, 0));
  receiver.take(asking(receiver.request(Operation::kSendOnly, 5, 10)));
  EXPECT_EQ(receiver.says(),
            "first 1 #2 [256], last 2 #2 [44], value 3 #3 =0, only 4 #4, ack 5 #5");
}

// The answer acknowledges it.
TEST(Responder, AnswersAReadThatAsksForItOnce) {
  Receiver receiver(connection());
  EXPECT_EQ(receiver.hears(asking(receiver.read(0, 10))), "only 0 #1 [10]");
  EXPECT_EQ(receiver.hears(asking(receiver.add(1))), "value 1 #2 =0");
}

struct Invalid {
  const char* why;
  std::vector<std::pair<Operation, std::size_t>> packets;  // the last one is
};

TEST(Responder, RefusesWhatIsNoMessage) {
  using enum Operation;
  const Invalid kRows[] = {{"no beginning", {{kSendMiddle, kMtu}}},
                           {"no beginning", {{kSendLast, 1}}},
                           {"no beginning", {{kSendLastImmediate, 1}}},
                           {"no beginning", {{kSendLastInvalidate, 1}}},
                           {"no beginning", {{kWriteMiddle, kMtu}}},
                           {"no beginning", {{kWriteLast, 1}}},
                           {"no beginning", {{kWriteLastImmediate, 1}}},
                           {"no end", {{kSendFirst, kMtu}, {kSendOnly, 1}}},
                           {"no end", {{kSendFirst, kMtu}, {kSendFirst, kMtu}}},
                           {"no end", {{kSendFirst, kMtu}, {kReadRequest, 0}}},
                           {"no end", {{kSendFirst, kMtu}, {kFetchAdd, 0}}},
                           {"no end", {{kSendFirst, kMtu}, {kWriteOnly, 1}}},
                           {"another's end", {{kSendFirst, kMtu}, {kWriteLast, 1}}},
                           {"another's end", {{kSendFirst, kMtu}, {kWriteMiddle, kMtu}}},
                           {"begins twice", {{kSendFirst, kMtu}, {kSendLast, 1}, {kSendLast, 1}}},
                           {"short", {{kSendFirst, 2 * kMtu}}},
                           {"not full", {{kSendFirst, kMtu}, {kSendMiddle, 2 * kMtu}}},
                           {"too long", {{kSendOnly, kMtu + 1}}},
                           {"too long", {{kSendFirst, kMtu}, {kSendLast, kMtu + 1}}},
                           {"unknown", {{kFlush, 0}}},
                           {"unknown", {{kAtomicWrite, 8}}}};
  for (const Invalid& row : kRows) {
    Receiver receiver(connection());
    int number = 0;
    for (const auto& [operation, length] : row.packets) {
      EXPECT_EQ(receiver.says(), "");
      receiver.take(operation, number++, length);
    }
    const auto said = receiver.answers();
    ASSERT_EQ(said.size(), 1U) << row.why;
    EXPECT_EQ(said[0].packet.syndrome, 0x61) << row.why;
    EXPECT_EQ(said[0].packet.psn, psn(number - 1)) << row.why;
    EXPECT_TRUE(receiver.responder.failed());
  }
}

struct WriteRow {
  std::uint32_t said;
  std::vector<std::pair<Operation, std::size_t>> packets;
  const char* answer;
};

TEST(Responder, RefusesWritesOfAnotherLengthThanTheySay) {
  using enum Operation;
  const WriteRow kRows[] = {
      {11, {{kWriteOnly, 10}}, "nak61 0 #0"},
      {9, {{kWriteOnly, 10}}, "nak61 0 #0"},
      {0, {{kWriteOnly, 10}}, "nak61 0 #0"},
      {kMtu, {{kWriteFirst, kMtu}}, "nak61 0 #0"},
      {kMtu - 1, {{kWriteFirst, kMtu}}, "nak61 0 #0"},
      {kMtu + 10, {{kWriteFirst, kMtu}, {kWriteLast, 9}}, "nak61 1 #0"},
      {kMtu + 10, {{kWriteFirst, kMtu}, {kWriteLast, 11}}, "nak61 1 #0"},
      {kMtu + 10, {{kWriteFirst, kMtu}, {kWriteLastImmediate, 11}}, "nak61 1 #0"},
      {kMtu + 10, {{kWriteFirst, kMtu}, {kWriteMiddle, kMtu}}, "nak61 1 #0"},
      {2 * kMtu, {{kWriteFirst, kMtu}, {kWriteMiddle, kMtu}}, "nak61 1 #0"},
      {2 * kMtu, {{kWriteFirst, kMtu}, {kWriteLast, kMtu}}, ""},
      {2 * kMtu + 1, {{kWriteFirst, kMtu}, {kWriteMiddle, kMtu}}, ""}};
  for (const WriteRow& row : kRows) {
    Receiver receiver(connection());
    const Bytes before = receiver.memory.bytes;
    int number = 0;
    for (const auto& [operation, length] : row.packets) {
      wire::Packet packet = receiver.request(operation, number++, length);
      packet.reth.length = row.said;
      receiver.take(packet);
    }
    EXPECT_EQ(receiver.says(), row.answer);
    EXPECT_TRUE(row.packets.size() > 1 || receiver.memory.bytes == before);
  }
}

// Nothing of what is refused is written, though its first packet would be allowed alone.
TEST(Responder, ChecksAllMemoryAtTheBeginning) {
  Receiver receiver(connection());
  const Bytes before = receiver.memory.bytes;
  wire::Packet write = receiver.request(Operation::kWriteFirst, 0, kMtu);
  write.reth.length = Memory::kBytes + 1;
  EXPECT_EQ(receiver.hears(write), "nak62 0 #0");
  EXPECT_EQ(receiver.memory.bytes, before);
  Receiver other(connection());
  EXPECT_EQ(other.hears(other.read(0, Memory::kBytes + 1)), "nak62 0 #0");
}

TEST(Responder, RefusesReadsWhenItRemembersNone) {
  Settings settings = connection();
  settings.max_reads_of_peer = 0;
  Receiver reader(settings);
  EXPECT_EQ(reader.hears(reader.read(0, 10)), "nak61 0 #0");
  Receiver adder(settings);
  EXPECT_EQ(adder.hears(adder.add(0)), "nak61 0 #0");
  EXPECT_EQ(adder.memory.changed, 0U);
}

// The longest read takes half of all numbers, with the smallest packets.
TEST(Responder, CountsTheNumbersOfTheLongestRead) {
  for (const bool weft : {false, true}) {
    Receiver receiver(weft ? selective() : connection());
    receiver.memory.vast = true;
    receiver.take(Operation::kSendOnly, 500, 10);
    receiver.take(receiver.read(0, 1U << 31));
    receiver.take(Operation::kSendOnly, 1 << 23, 10);
    EXPECT_EQ(receiver.memory.messages.size(), 1U);
    EXPECT_EQ(receiver.responder.messages(), 2U);
  }
}

TEST(Responder, AnswersExtendedConnectionsInTheirOwnWords) {
  Settings settings = connection();
  settings.kind = wire::Transport::kExtendedReliable;
  Receiver receiver(settings);
  EXPECT_EQ(receiver.hears(asking(receiver.request(Operation::kSendOnly, 0, 4))), "ack 0 #1");
  EXPECT_EQ(receiver.hears(receiver.read(1, 4)), "only 1 #2 [4]");
}

}  // namespace
}  // namespace weft::transport::testing
