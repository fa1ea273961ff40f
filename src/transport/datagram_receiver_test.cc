// SPDX-License-Identifier: BSD-2-Clause
// What is made of unreliable datagrams, one by one?
#include "transport/datagram_receiver.h"

#include <gtest/gtest.h>

#include "recording_target.h"

namespace weft::transport {
namespace {

using testing::RecordingTarget;
using wire::Operation;
using Bytes = RecordingTarget::Bytes;

constexpr std::size_t kPathMtu = 256;
constexpr std::size_t kGlobal = wire::kGlobalRouteBytes;
constexpr std::uint32_t kQueueKey = 0x0123'4567;

class DatagramReceiving : public ::testing::Test {
 protected:
  DatagramReceiving() {
    target_.receives = 8;
    settings_.kind = wire::Transport::kUnreliableDatagram;
    settings_.path_mtu = kPathMtu;
    settings_.queue_key = kQueueKey;
    receiver_.emplace(settings_, target_);
    arrival_.route.source[0] = std::byte{10};
    arrival_.route.destination[0] = std::byte{11};
    arrival_.hop_limit = 63;
  }
  ~DatagramReceiving() override { EXPECT_EQ(target_.wrong, ""); }

  wire::Packet packet(std::size_t length) {
    payload_.assign(length, std::byte{0x5A});
    wire::Packet packet;
    packet.opcode = opcode_of(wire::Transport::kUnreliableDatagram, Operation::kSendOnly);
    packet.queue_key = kQueueKey;
    packet.source = 0x4321;
    packet.payload = payload_;
    return packet;
  }
  void take(const wire::Packet& packet) { receiver_->take(packet, arrival_); }
  std::uint64_t dropped(Drop reason) const { return receiver_->drops().of(reason); }

  RecordingTarget target_;
  Settings settings_;
  wire::Arrival arrival_;
  Bytes payload_;
  std::optional<DatagramReceiver> receiver_;
};

TEST_F(DatagramReceiving, BeginWithWhereTheyCameFrom) {
  wire::Packet some = packet(5);
  some.solicited = true;
  take(some);
  ASSERT_EQ(target_.messages.size(), 1U);
  const RecordingTarget::Came& came = target_.messages[0];
  // UDP 8, base header 12, datagram header 8, payload 5, padding 3, ICRC 4.
  const auto header = wire::global_route(arrival_, 12 + 8 + 5 + 3 + 4);
  ASSERT_EQ(came.bytes.size(), kGlobal + 5);
  EXPECT_EQ(Bytes(came.bytes.begin(), came.bytes.begin() + kGlobal),
            Bytes(header.begin(), header.end()));
  EXPECT_EQ(came.bytes[23], std::byte{20 + 8 + 12 + 8 + 5 + 3 + 4}) << "the length of all";
  EXPECT_EQ(Bytes(came.bytes.begin() + kGlobal, came.bytes.end()), payload_);
  EXPECT_EQ(came.source, 0x4321U);
  EXPECT_TRUE(came.solicited);
  EXPECT_EQ(came.immediate, std::nullopt);
  EXPECT_EQ(receiver_->messages(), 1U);
}

TEST_F(DatagramReceiving, OfIpv6BeginWithTheHeaderThatTheyCameWith) {
  arrival_.route.v6 = true;
  arrival_.traffic_class = 2;
  take(packet(0));
  ASSERT_EQ(target_.messages.size(), 1U);
  const Bytes& bytes = target_.messages[0].bytes;
  ASSERT_EQ(bytes.size(), kGlobal);
  EXPECT_EQ(bytes[0], std::byte{0x60});
  EXPECT_EQ(bytes[5], std::byte{8 + 12 + 8 + 4});
  EXPECT_EQ(bytes[7], std::byte{63});
  EXPECT_EQ(bytes[8], std::byte{10});
}

TEST_F(DatagramReceiving, BringImmediateValues) {
  wire::Packet told = packet(1);
  told.opcode = opcode_of(wire::Transport::kUnreliableDatagram, Operation::kSendOnlyImmediate);
  told.immediate = 99;
  take(told);
  ASSERT_EQ(target_.messages.size(), 1U);
  EXPECT_EQ(target_.messages[0].immediate, 99U);
}

TEST_F(DatagramReceiving, AreTakenWhateverTheirNumber) {
  for (const std::uint32_t number : {5U, 5U, 0U, 0xFF'FFFFU}) {
    wire::Packet some = packet(1);
    some.psn = Psn(number);
    take(some);
  }
  EXPECT_EQ(target_.messages.size(), 4U);
}

TEST_F(DatagramReceiving, WithAnotherQueueKeyAreDropped) {
  wire::Packet stranger = packet(1);
  stranger.queue_key = kQueueKey ^ 0x8000'0000;
  take(stranger);
  EXPECT_EQ(dropped(Drop::kQueueKey), 1U);
  EXPECT_TRUE(target_.messages.empty());
  EXPECT_EQ(target_.receives, 8U);
}

TEST_F(DatagramReceiving, OfAnotherPartitionOrTransportAreDropped) {
  wire::Packet limited = packet(1);
  limited.pkey = 0x7FFF;
  take(limited);
  EXPECT_EQ(target_.messages.size(), 1U) << "a limited member may talk to a full one";
  wire::Packet elsewhere = packet(1);
  elsewhere.pkey = 0x1234;
  take(elsewhere);
  wire::Packet reliable = packet(1);
  reliable.opcode = opcode_of(wire::Transport::kReliableDatagram, Operation::kSendOnly);
  take(reliable);
  EXPECT_EQ(dropped(Drop::kPartition), 1U);
  EXPECT_EQ(dropped(Drop::kTransport), 1U);
  EXPECT_EQ(target_.messages.size(), 1U);
}

TEST_F(DatagramReceiving, WithoutAReceiveAreDropped) {
  target_.receives = 0;
  take(packet(1));
  EXPECT_EQ(dropped(Drop::kNoReceive), 1U);
  EXPECT_EQ(receiver_->messages(), 0U);
}

TEST_F(DatagramReceiving, NeedRoomForTheFortyBytesToo) {
  target_.receives = 1;
  target_.room = kGlobal + 9;
  take(packet(10));
  EXPECT_EQ(target_.breaks, 1U);
  target_.room = kGlobal - 1;
  take(packet(0));
  EXPECT_EQ(target_.breaks, 2U);
  EXPECT_EQ(dropped(Drop::kLength), 2U);
  target_.room = kGlobal + 10;
  take(packet(10));
  EXPECT_EQ(target_.messages.size(), 1U) << "in the receive that the others left";
}

TEST_F(DatagramReceiving, LongerThanThePathAllowsAreDropped) {
  take(packet(kPathMtu));
  EXPECT_EQ(target_.messages.size(), 1U);
  take(packet(kPathMtu + 1));
  EXPECT_EQ(dropped(Drop::kLength), 1U);
  EXPECT_EQ(target_.messages.size(), 1U);
}

}  // namespace
}  // namespace weft::transport
