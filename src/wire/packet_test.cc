// SPDX-License-Identifier: BSD-2-Clause
// Does every packet say after it was read what it said when it was written?
#include "wire/packet.h"

#include <gtest/gtest.h>

#include <random>

#include "test_support.h"

namespace weft::wire {
namespace {

using testing::Bytes;
using testing::from_hex;

// A length that packets of an opcode may have, different from test to test.
std::size_t length_for(Payload payload, std::size_t seed) {
  switch (payload) {
    case Payload::kNone:
      return 0;
    case Payload::kFull:
      return std::size_t{256} << seed % 5;
    case Payload::kSome:
      return 1 + seed % kMaxPathMtu;
    case Payload::kAny:
      return seed % (kMaxPathMtu + 1);
    case Payload::kEight:
      return 8;
    case Payload::kCnp:
      return 16;
  }
  return 0;
}

Bytes write(const Packet& packet) {
  Bytes out(header_bytes(packet));
  write_headers(packet, packet.payload.size(), out.data());
  out.insert(out.end(), packet.payload.begin(), packet.payload.end());
  out.resize(out.size() + padding_of(packet.payload.size()) + kIcrcBytes);
  return out;
}

Packet random_packet(std::uint8_t opcode, std::mt19937_64& random) {
  Packet packet;
  packet.opcode = opcode;
  const auto coin = [&] { return random() % 2 == 0; };
  packet.solicited = coin();
  packet.migrated = coin();
  packet.fecn = coin();
  packet.becn = coin();
  packet.ack_request = coin();
  packet.pkey = static_cast<std::uint16_t>(random());
  packet.destination = random() & Psn::kMask;
  packet.psn = Psn(static_cast<std::uint32_t>(random()));
  packet.end_to_end_context = random() & Psn::kMask;
  packet.queue_key = static_cast<std::uint32_t>(random());
  packet.source = random() & Psn::kMask;
  packet.shared_receive = random() & Psn::kMask;
  packet.flush = static_cast<std::uint32_t>(random());
  packet.reth = {random(), static_cast<std::uint32_t>(random()),
                 static_cast<std::uint32_t>(random())};
  packet.atomic = {random(), static_cast<std::uint32_t>(random()), random(), random()};
  packet.immediate = static_cast<std::uint32_t>(random());
  packet.invalidate = static_cast<std::uint32_t>(random());
  packet.syndrome = static_cast<std::uint8_t>(random());
  packet.message_number = random() & Psn::kMask;
  packet.original = random();
  return packet;
}

void expect_same(const Packet& a, const Packet& b) {
  const Headers headers = layout_of(a.opcode).headers;
  const auto has = [&](Headers header) { return (headers & header) != 0; };
  EXPECT_EQ(a.opcode, b.opcode);
  EXPECT_EQ(a.solicited, b.solicited);
  EXPECT_EQ(a.migrated, b.migrated);
  EXPECT_EQ(a.fecn, b.fecn);
  EXPECT_EQ(a.becn, b.becn);
  EXPECT_EQ(a.ack_request, b.ack_request);
  EXPECT_EQ(a.pkey, b.pkey);
  EXPECT_EQ(a.destination, b.destination);
  EXPECT_EQ(a.psn, b.psn);
  EXPECT_EQ(has(kRdeth) ? a.end_to_end_context : 0, b.end_to_end_context);
  EXPECT_EQ(has(kDeth) ? a.queue_key : 0, b.queue_key);
  EXPECT_EQ(has(kDeth) ? a.source : 0, b.source);
  EXPECT_EQ(has(kXrceth) ? a.shared_receive : 0, b.shared_receive);
  EXPECT_EQ(has(kFeth) ? a.flush : 0, b.flush);
  EXPECT_EQ(has(kReth) ? a.reth.address : 0, b.reth.address);
  EXPECT_EQ(has(kReth) ? a.reth.key : 0, b.reth.key);
  EXPECT_EQ(has(kReth) ? a.reth.length : 0, b.reth.length);
  EXPECT_EQ(has(kAtomicEth) ? a.atomic.address : 0, b.atomic.address);
  EXPECT_EQ(has(kAtomicEth) ? a.atomic.key : 0, b.atomic.key);
  EXPECT_EQ(has(kAtomicEth) ? a.atomic.swap_or_add : 0, b.atomic.swap_or_add);
  EXPECT_EQ(has(kAtomicEth) ? a.atomic.compare : 0, b.atomic.compare);
  EXPECT_EQ(has(kImmediate) ? a.immediate : 0, b.immediate);
  EXPECT_EQ(has(kIeth) ? a.invalidate : 0, b.invalidate);
  EXPECT_EQ(has(kAeth) ? a.syndrome : 0, b.syndrome);
  EXPECT_EQ(has(kAeth) ? a.message_number : 0, b.message_number);
  EXPECT_EQ(has(kAtomicAckEth) ? a.original : 0, b.original);
  EXPECT_EQ(Bytes(a.payload.begin(), a.payload.end()), Bytes(b.payload.begin(), b.payload.end()));
}

TEST(Packet, OfEveryOpcodeIsReadAsItWasWritten) {
  std::mt19937_64 random(1);
  int opcodes = 0;
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    const Layout& layout = layout_of(static_cast<std::uint8_t>(opcode));
    if (!layout.known) continue;
    ++opcodes;
    for (int turn = 0; turn < 20; ++turn) {
      Packet packet = random_packet(static_cast<std::uint8_t>(opcode), random);
      Bytes payload(length_for(layout.payload, random()));
      for (std::byte& byte : payload) byte = static_cast<std::byte>(random());
      packet.payload = payload;
      const Bytes bytes = write(packet);
      Packet read;
      ASSERT_EQ(parse(bytes, read), Malformed::kNone) << opcode;
      expect_same(packet, read);
    }
  }
  EXPECT_EQ(opcodes, 25 + 25 + 12 + 23 + 2 + 1) << "RC, XRC, UC, RD, UD, CNP";
}

TEST(Packet, StandsWhereTheSpecificationPutsIt) {
  Packet packet;
  const Bytes bytes = from_hex("6470ffff00000001800000078001000000000011deadbeef0100000000000000");
  ASSERT_EQ(parse(bytes, packet), Malformed::kNone);
  EXPECT_EQ(packet.opcode, opcode_of(Transport::kUnreliableDatagram, Operation::kSendOnly));
  EXPECT_TRUE(packet.migrated);
  EXPECT_FALSE(packet.solicited);
  EXPECT_EQ(packet.pkey, kDefaultPkey);
  EXPECT_EQ(packet.destination, 1u);
  EXPECT_TRUE(packet.ack_request);
  EXPECT_EQ(packet.psn, Psn(7));
  EXPECT_EQ(packet.queue_key, 0x8001'0000u);
  EXPECT_EQ(packet.source, 0x11u);
  EXPECT_EQ(packet.payload.size(), 5u);
}

TEST(Packet, ThatIsNotWellFormedIsRefusedWithTheReason) {
  const char kGood[] = "6470ffff00000001800000078001000000000011deadbeef0102030000000000";
  const auto refusal = [](const Bytes& bytes) {
    Packet packet;
    return parse(bytes, packet);
  };
  const Bytes good = from_hex(kGood);
  const auto changed = [&](std::size_t at, int value) {
    Bytes bytes = good;
    bytes[at] = static_cast<std::byte>(value);
    return bytes;
  };
  EXPECT_EQ(refusal(good), Malformed::kPadding) << "three bytes of padding for five of payload";
  for (std::size_t length = 0; length < 24; ++length) {
    EXPECT_EQ(refusal(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length))),
              Malformed::kTooShort)
        << length;
  }
  EXPECT_EQ(refusal(changed(1, 0x71)), Malformed::kVersion);
  EXPECT_EQ(refusal(changed(0, 0x1F)), Malformed::kUnknownOpcode);
  EXPECT_EQ(refusal(changed(0, 0xC4)), Malformed::kUnknownOpcode) << "a vendor's own";
  EXPECT_EQ(refusal(changed(1, 0x40)), Malformed::kNone) << "eight bytes of payload, no padding";
  EXPECT_EQ(refusal(changed(0, 0x00)), Malformed::kPadding);
  EXPECT_EQ(refusal(from_hex("0040ffff000000010000000700000000000000000000000000000000")),
            Malformed::kPayload)
      << "the first of several packets is full";
}

TEST(PartitionKeys, MatchWhenOneOfTwoMembersOfAPartitionIsAFullOne) {
  EXPECT_TRUE(pkeys_match(0xFFFF, 0xFFFF));
  EXPECT_TRUE(pkeys_match(0x7FFF, 0xFFFF));
  EXPECT_TRUE(pkeys_match(0xFFFF, 0x7FFF));
  EXPECT_FALSE(pkeys_match(0x7FFF, 0x7FFF)) << "two limited members";
  EXPECT_FALSE(pkeys_match(0x8001, 0xFFFF)) << "another partition";
  EXPECT_FALSE(pkeys_match(0x8000, 0x8000)) << "partition 0 is none";
}

}  // namespace
}  // namespace weft::wire
