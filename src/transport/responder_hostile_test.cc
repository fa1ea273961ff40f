// SPDX-License-Identifier: BSD-2-Clause
// What can a peer do to a responder that follows no rule?
#include <gtest/gtest.h>

#include "test_flow.h"

namespace weft::transport::testing {
namespace {

constexpr std::uint32_t kLongest = 1U << 31;

std::size_t answers_of(Receiver& receiver) { return receiver.answers().size(); }

TEST(HostileResponder, KeepsFewAnswersForARequestThatIsRepeatedWithoutEnd) {
  for (const bool atomic : {false, true}) {
    Receiver receiver(connection());
    const wire::Packet request = atomic ? receiver.add(0) : receiver.read(0, 100);
    for (int i = 0; i < 100'000; ++i) receiver.take(request);
    EXPECT_EQ(receiver.memory.changed, atomic ? 1U : 0U);
    const std::size_t answers = answers_of(receiver);
    EXPECT_GE(answers, 1U);
    EXPECT_LE(answers, 4 * receiver.settings.max_reads_of_peer);
    EXPECT_NE(receiver.hears(request), "") << "an answer that got lost must be had again";
  }
}

// Hardware does so, too: a requester with more reads in flight breaks the agreement.
TEST(HostileResponder, RefusesMoreReadsAtOnceThanWereAgreedOn) {
  Settings settings = connection();
  settings.max_reads_of_peer = 3;
  Receiver receiver(settings);
  for (int i = 0; i < 3; ++i) receiver.take(receiver.read(i, 10));
  EXPECT_EQ(receiver.says(), "only 0 #1 [10], only 1 #2 [10], only 2 #3 [10]");
  for (int i = 3; i < 6; ++i) receiver.take(receiver.read(i, 10));
  receiver.take(receiver.add(6));
  EXPECT_EQ(receiver.says(), "only 3 #4 [10], only 4 #5 [10], only 5 #6 [10], nak61 6 #6");
  EXPECT_EQ(receiver.memory.changed, 0U);
}

TEST(HostileResponder, DropsWhatIsOfAnotherTransport) {
  Receiver receiver(connection());
  wire::Packet packet = receiver.request(Operation::kSendOnly, 0, 10);
  for (const auto kind :
       {wire::Transport::kUnreliableConnection, wire::Transport::kReliableDatagram,
        wire::Transport::kUnreliableDatagram, wire::Transport::kExtendedReliable}) {
    packet.opcode = wire::opcode_of(kind, Operation::kSendOnly);
    packet.ack_request = true;
    EXPECT_EQ(receiver.hears(packet), "");
  }
  packet.opcode = wire::kCongestionNotification;
  EXPECT_EQ(receiver.hears(packet), "");
  EXPECT_EQ(receiver.stats.of(Stat::kOutOfSequence), 5U);
  EXPECT_TRUE(receiver.memory.messages.empty());
}

TEST(HostileResponder, DropsResponses) {
  Receiver receiver(connection());
  for (const Operation operation : {Operation::kAcknowledge, Operation::kReadResponseOnly,
                                    Operation::kReadResponseMiddle, Operation::kAtomicAcknowledge})
    EXPECT_EQ(receiver.hears(operation, 0), "");
  EXPECT_FALSE(receiver.responder.failed());
}

// IBTA: no message is longer than 2^31 bytes.
TEST(HostileResponder, RefusesWritesAndReadsThatAreTooLong) {
  for (const Operation operation : {Operation::kWriteFirst, Operation::kReadRequest}) {
    Receiver receiver(connection());
    wire::Packet packet =
        receiver.request(operation, 0, operation == Operation::kWriteFirst ? kMtu : 0);
    packet.reth.length = kLongest + 1;
    EXPECT_EQ(receiver.hears(packet), "nak61 0 #0");
  }
}

// Its numbers would reach around the circle.
TEST(HostileResponder, KeepsNoReadThatComesTooEarlyAndIsLongerThanAnyPart) {
  Receiver receiver(selective());
  for (const std::uint32_t length : {kLongest, kLongest - 100'000, 0xFFFF'FFFFU}) {
    EXPECT_EQ(receiver.hears(receiver.read(1000, length)), "");
    EXPECT_EQ(receiver.hears(receiver.read(2, length)), "");
  }
  EXPECT_EQ(receiver.stats.of(Stat::kOutOfOrderKept), 0U);
  EXPECT_EQ(receiver.hears(Operation::kSendOnly, 2, 10), "nak60 0 #2");
  receiver.take(Operation::kSendOnly, 0, 10);
  receiver.take(Operation::kSendOnly, 1, 10);
  EXPECT_EQ(receiver.memory.messages.size(), 3U);
}

TEST(HostileResponder, HasSilenceInWhatItTellsBehindARefusal) {
  Receiver receiver(selective());
  receiver.take(Operation::kSendOnly, 2, 10);
  receiver.take(Operation::kSendLast, 0, 10);
  EXPECT_EQ(receiver.says(), "nak61 0 #0");
}

}  // namespace
}  // namespace weft::transport::testing
