// SPDX-License-Identifier: BSD-2-Clause
// What is made of the packets of an unreliable connection, one by one?
#include "transport/unreliable_receiver.h"

#include <gtest/gtest.h>

#include "recording_target.h"

namespace weft::transport {
namespace {

using testing::RecordingTarget;
using wire::Operation;
using Bytes = RecordingTarget::Bytes;

constexpr std::size_t kPathMtu = 256;
constexpr std::uint32_t kFirst = 0xFF'FFFE;  // numbers wrap around in most tests
constexpr std::uint64_t kBase = RecordingTarget::kBase;
constexpr std::uint32_t kKey = RecordingTarget::kKey;

Settings settings() {
  Settings settings;
  settings.kind = wire::Transport::kUnreliableConnection;
  settings.path_mtu = kPathMtu;
  settings.first_expected = Psn(kFirst);
  return settings;
}

class UnreliableReceiving : public ::testing::Test {
 protected:
  UnreliableReceiving() { target_.receives = 8; }
  ~UnreliableReceiving() override { EXPECT_EQ(target_.wrong, ""); }

  // A packet number kFirst + `number` full of `fill`.
  wire::Packet packet(Operation operation, std::uint32_t number, std::size_t length, int fill = 1) {
    payloads_.emplace_back(length, static_cast<std::byte>(fill));
    wire::Packet packet;
    packet.opcode = opcode_of(wire::Transport::kUnreliableConnection, operation);
    packet.psn = Psn(kFirst + number);
    packet.payload = payloads_.back();
    packet.immediate = 0x77;
    return packet;
  }
  void take(Operation operation, std::uint32_t number, std::size_t length, int fill = 1) {
    receiver_.take(packet(operation, number, length, fill));
  }
  void take_write(Operation operation, std::uint32_t number, std::size_t length, wire::Reth reth,
                  int fill = 1) {
    wire::Packet write = packet(operation, number, length, fill);
    write.reth = reth;
    receiver_.take(write);
  }
  std::uint64_t dropped(Drop reason) const { return receiver_.drops().of(reason); }
  std::uint64_t dropped() const { return receiver_.drops().total(); }

  RecordingTarget target_;
  std::vector<Bytes> payloads_;
  UnreliableReceiver receiver_{settings(), target_};
};

TEST_F(UnreliableReceiving, PutsAMessageTogether) {
  take(Operation::kSendFirst, 0, kPathMtu, 1);
  take(Operation::kSendMiddle, 1, kPathMtu, 2);
  take(Operation::kSendLastImmediate, 2, 3, 3);
  ASSERT_EQ(target_.messages.size(), 1U);
  Bytes expected(2 * kPathMtu + 3, std::byte{1});
  std::fill(expected.begin() + kPathMtu, expected.end(), std::byte{2});
  std::fill(expected.end() - 3, expected.end(), std::byte{3});
  EXPECT_EQ(target_.messages[0].bytes, expected);
  EXPECT_EQ(target_.messages[0].immediate, 0x77U);
  take(Operation::kSendOnly, 3, 0);
  ASSERT_EQ(target_.messages.size(), 2U);
  EXPECT_TRUE(target_.messages[1].bytes.empty());
  EXPECT_EQ(dropped(), 0U);
  EXPECT_EQ(receiver_.counts().messages, 2U);
  EXPECT_EQ(receiver_.counts().packets, 4U);
}

TEST_F(UnreliableReceiving, DropsTheRestOfAMessageThatLacksAPacketAndReusesItsReceive) {
  target_.receives = 1;
  take(Operation::kSendFirst, 0, kPathMtu);
  take(Operation::kSendMiddle, 2, kPathMtu);
  EXPECT_EQ(target_.breaks, 1U);
  take(Operation::kSendMiddle, 3, kPathMtu);
  take(Operation::kSendLast, 4, 1);
  EXPECT_TRUE(target_.messages.empty());
  EXPECT_EQ(dropped(Drop::kSequence), 1U);
  EXPECT_EQ(dropped(Drop::kRest), 2U);
  EXPECT_EQ(receiver_.counts().broken, 1U);
  take(Operation::kSendOnly, 5, 9);
  ASSERT_EQ(target_.messages.size(), 1U);
  EXPECT_EQ(target_.messages[0].bytes.size(), 9U) << "nothing is left of the broken one";
}

TEST_F(UnreliableReceiving, DropsAMessageWhoseBeginningGotLost) {
  take(Operation::kSendMiddle, 1, kPathMtu);
  take(Operation::kSendLast, 2, 5);
  EXPECT_EQ(dropped(Drop::kSequence), 1U);
  EXPECT_EQ(dropped(Drop::kRest), 1U);
  take(Operation::kSendFirst, 3, kPathMtu);
  take(Operation::kSendLast, 4, 5);
  EXPECT_EQ(target_.messages.size(), 1U);
  EXPECT_EQ(target_.breaks, 0U);
}

TEST_F(UnreliableReceiving, TakesABeginningWhateverItsNumberAndGoesOnFromThere) {
  take(Operation::kSendOnly, 1000, 1);
  take(Operation::kSendFirst, 5, kPathMtu);
  take(Operation::kSendLast, 6, 1);
  take(Operation::kSendFirst, 0x80'0000, kPathMtu);
  take(Operation::kSendLast, 0x80'0001, 1);
  EXPECT_EQ(target_.messages.size(), 3U);
  EXPECT_EQ(dropped(), 0U);
}

TEST_F(UnreliableReceiving, BeginsAnewWhenAMessageStartsWithinAnother) {
  take(Operation::kSendFirst, 0, kPathMtu, 1);
  take(Operation::kSendFirst, 1, kPathMtu, 2);
  take(Operation::kSendLast, 2, 1, 2);
  ASSERT_EQ(target_.messages.size(), 1U);
  EXPECT_EQ(target_.messages[0].bytes, Bytes(kPathMtu + 1, std::byte{2}));
  EXPECT_EQ(target_.breaks, 1U);
}

TEST_F(UnreliableReceiving, DeliversWhatIsWholeAndComesTwiceTwice) {
  take(Operation::kSendOnly, 0, 1);
  take(Operation::kSendOnly, 0, 1);
  EXPECT_EQ(target_.messages.size(), 2U);
  take(Operation::kSendFirst, 1, kPathMtu);
  take(Operation::kSendFirst, 1, kPathMtu);
  take(Operation::kSendLast, 2, 1);
  EXPECT_EQ(target_.messages.size(), 3U) << "the second beginning takes the place of the first";
  take(Operation::kSendLast, 2, 1);
  EXPECT_EQ(target_.messages.size(), 3U) << "an end alone is nothing";
  EXPECT_EQ(dropped(Drop::kSequence), 1U);
  take(Operation::kSendFirst, 3, kPathMtu);
  take(Operation::kSendMiddle, 4, kPathMtu);
  take(Operation::kSendMiddle, 4, kPathMtu);
  take(Operation::kSendLast, 5, 1);
  EXPECT_EQ(target_.messages.size(), 3U) << "a middle one that comes twice breaks the message";
}

TEST_F(UnreliableReceiving, NeverContinuesASendWithAWriteNorAWriteWithASend) {
  take(Operation::kSendFirst, 0, kPathMtu);
  take(Operation::kWriteMiddle, 1, kPathMtu);
  take(Operation::kSendLast, 2, 1);
  take_write(Operation::kWriteFirst, 3, kPathMtu, {kBase, kKey, 2 * kPathMtu});
  take(Operation::kSendLast, 4, 1);
  take(Operation::kWriteLast, 5, 1);
  EXPECT_TRUE(target_.messages.empty());
  EXPECT_TRUE(target_.writes.empty());
  EXPECT_EQ(receiver_.counts().broken, 2U);
  EXPECT_EQ(dropped(Drop::kSequence), 2U);
  EXPECT_EQ(dropped(Drop::kRest), 2U);
}

TEST_F(UnreliableReceiving, DropsAMessageWithoutAPostedReceive) {
  target_.receives = 0;
  take(Operation::kSendFirst, 0, kPathMtu);
  target_.receives = 1;
  take(Operation::kSendLast, 1, 1);
  EXPECT_TRUE(target_.messages.empty()) << "it is too late for this one";
  EXPECT_EQ(dropped(Drop::kNoReceive), 1U);
  EXPECT_EQ(dropped(Drop::kRest), 1U);
  take(Operation::kSendOnly, 2, 1);
  EXPECT_EQ(target_.messages.size(), 1U);
}

TEST_F(UnreliableReceiving, DropsAMessageThatIsLongerThanItsReceive) {
  target_.receives = 1;
  target_.room = kPathMtu;
  take(Operation::kSendFirst, 0, kPathMtu);
  take(Operation::kSendLast, 1, 1);
  EXPECT_EQ(dropped(Drop::kLength), 1U);
  EXPECT_EQ(target_.breaks, 1U);
  take(Operation::kSendOnly, 2, kPathMtu);
  EXPECT_EQ(target_.messages.size(), 1U) << "in the receive that it left";
}

TEST_F(UnreliableReceiving, DropsPacketsOfALengthThatIsNotThisPaths) {
  take(Operation::kSendFirst, 0, 2 * kPathMtu);
  take(Operation::kSendOnly, 1, kPathMtu + 1);
  take(Operation::kSendFirst, 2, kPathMtu);
  take(Operation::kSendMiddle, 3, kPathMtu / 2);
  take(Operation::kSendFirst, 4, kPathMtu);
  take(Operation::kSendLast, 5, kPathMtu + 1);
  EXPECT_EQ(dropped(Drop::kLength), 4U);
  EXPECT_EQ(dropped(), 4U);
  EXPECT_TRUE(target_.messages.empty());
  EXPECT_EQ(target_.breaks, 2U);
}

TEST_F(UnreliableReceiving, WritesToMemory) {
  take_write(Operation::kWriteFirst, 0, kPathMtu, {kBase + 8, kKey, kPathMtu + 2}, 1);
  EXPECT_TRUE(target_.writes.empty());
  take(Operation::kWriteLastImmediate, 1, 2, 2);
  take_write(Operation::kWriteOnly, 2, 4, {kBase, kKey, 4}, 3);
  ASSERT_EQ(target_.writes.size(), 2U);
  EXPECT_EQ(target_.writes[0].bytes[kPathMtu - 1], std::byte{1});
  EXPECT_EQ(target_.writes[0].bytes[kPathMtu], std::byte{2});
  EXPECT_EQ(target_.writes[0].immediate, 0x77U);
  EXPECT_EQ(target_.area[3], std::byte{3});
  EXPECT_EQ(target_.area[4], std::byte{0});
  EXPECT_EQ(target_.writes[1].immediate, std::nullopt);
  EXPECT_EQ(target_.receives, 7U) << "one was for the immediate value";
}

TEST_F(UnreliableReceiving, RefusesAWriteAsAWholeBeforeItTouchesAByte) {
  take_write(Operation::kWriteFirst, 0, kPathMtu, {kBase, kKey + 1, kPathMtu + 1});
  take(Operation::kWriteLast, 1, 1);
  take_write(Operation::kWriteFirst, 2, kPathMtu,
             {kBase, kKey, static_cast<std::uint32_t>(RecordingTarget::kAreaBytes + 1)});
  take_write(Operation::kWriteOnly, 3, 1, {kBase - 1, kKey, 1});
  EXPECT_EQ(dropped(Drop::kAccess), 3U);
  EXPECT_EQ(dropped(Drop::kRest), 1U);
  EXPECT_EQ(target_.area, Bytes(RecordingTarget::kAreaBytes));
}

TEST_F(UnreliableReceiving, LetsTheTargetSayWhetherAnEmptyWriteNeedsAKey) {
  take_write(Operation::kWriteOnlyImmediate, 0, 0, {1, 2, 0});
  EXPECT_EQ(dropped(Drop::kAccess), 1U);
  target_.lenient = true;
  take_write(Operation::kWriteOnlyImmediate, 1, 0, {1, 2, 0});
  EXPECT_EQ(target_.writes.size(), 1U);
  EXPECT_EQ(dropped(), 1U);
}

TEST_F(UnreliableReceiving, DropsAWriteOfAnotherLengthThanItSaid) {
  const wire::Reth two{kBase, kKey, 2 * kPathMtu};
  take_write(Operation::kWriteOnly, 0, 5, {kBase, kKey, 4});
  take_write(Operation::kWriteOnly, 1, 5, {kBase, kKey, 6});
  take_write(Operation::kWriteFirst, 2, kPathMtu, {kBase, kKey, kPathMtu});
  EXPECT_EQ(target_.area, Bytes(RecordingTarget::kAreaBytes));
  take_write(Operation::kWriteFirst, 3, kPathMtu, two);
  take(Operation::kWriteMiddle, 4, kPathMtu);
  take_write(Operation::kWriteFirst, 5, kPathMtu, two);
  take(Operation::kWriteLast, 6, 1);
  take_write(Operation::kWriteOnly, 7, 0, {kBase, kKey, (1U << 31) + 1});
  EXPECT_EQ(dropped(Drop::kLength), 6U);
  EXPECT_TRUE(target_.writes.empty());
}

TEST_F(UnreliableReceiving, DoesNotReportAWriteWhoseImmediateValueFindsNoReceive) {
  target_.receives = 0;
  take_write(Operation::kWriteFirst, 0, kPathMtu, {kBase, kKey, kPathMtu + 1});
  take(Operation::kWriteLastImmediate, 1, 1);
  EXPECT_EQ(dropped(Drop::kNoReceive), 1U);
  EXPECT_TRUE(target_.writes.empty());
  EXPECT_EQ(target_.area[kPathMtu], std::byte{0});
}

TEST_F(UnreliableReceiving, DropsAWriteWhoseMemoryGoes) {
  take_write(Operation::kWriteFirst, 0, kPathMtu, {kBase, kKey, 3 * kPathMtu});
  target_.gone = true;
  take(Operation::kWriteMiddle, 1, kPathMtu);
  take(Operation::kWriteLast, 2, kPathMtu);
  EXPECT_EQ(dropped(Drop::kUnreachable), 1U);
  EXPECT_EQ(dropped(Drop::kRest), 1U);
  EXPECT_TRUE(target_.writes.empty());
}

TEST_F(UnreliableReceiving, IsNotDisturbedByPacketsThatAreNotItsOwn) {
  take(Operation::kSendFirst, 0, kPathMtu);
  wire::Packet other = packet(Operation::kSendOnly, 1, 1);
  other.opcode = opcode_of(wire::Transport::kReliableConnection, Operation::kSendOnly);
  receiver_.take(other);
  wire::Packet elsewhere = packet(Operation::kSendOnly, 1, 1);
  elsewhere.pkey = 0x8001;
  receiver_.take(elsewhere);
  take(Operation::kSendLast, 1, 1);
  EXPECT_EQ(dropped(Drop::kTransport), 1U);
  EXPECT_EQ(dropped(Drop::kPartition), 1U);
  ASSERT_EQ(target_.messages.size(), 1U);
  EXPECT_EQ(target_.messages[0].bytes.size(), kPathMtu + 1);
}

TEST(UnreliableReceiver, LeavesTheReceiveOfAMessageThatWillNotEnd) {
  RecordingTarget target;
  target.receives = 1;
  const Bytes payload(kPathMtu);
  wire::Packet first;
  first.opcode = opcode_of(wire::Transport::kUnreliableConnection, Operation::kSendFirst);
  first.payload = payload;
  {
    UnreliableReceiver receiver(settings(), target);
    receiver.take(first);
    EXPECT_EQ(target.breaks, 0U);
  }
  EXPECT_EQ(target.breaks, 1U);
}

TEST(Drops, AreCountedByReasons) {
  Drops drops;
  for (std::size_t i = 0; i < kDropReasons; ++i) {
    const auto reason = static_cast<Drop>(i);
    for (std::size_t packets = 0; packets <= i; ++packets) drops.count(reason);
  }
  EXPECT_EQ(drops.of(Drop::kTransport), 1U);
  EXPECT_EQ(drops.of(Drop::kUnreachable), kDropReasons);
  EXPECT_EQ(drops.total(), kDropReasons * (kDropReasons + 1) / 2);
}

}  // namespace
}  // namespace weft::transport
