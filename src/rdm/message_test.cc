// SPDX-License-Identifier: BSD-2-Clause
// Is what stands before the bytes of a message read back as it was written?
#include "rdm/message.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace weft::rdm {
namespace {

constexpr MessageKind kKinds[] = {MessageKind::kEager,  MessageKind::kRts,    MessageKind::kTaken,
                                  MessageKind::kAtomic, MessageKind::kResult, MessageKind::kAlias,
                                  MessageKind::kCts};

MessageHeader again(const MessageHeader& header) {
  std::array<std::byte, kMessageHeader> bytes;
  bytes.fill(std::byte{0xEE});
  write_header(header, bytes.data());
  return read_header(bytes.data());
}

void expect_same(const MessageHeader& got, const MessageHeader& header) {
  EXPECT_EQ(got.kind, header.kind);
  EXPECT_EQ(got.operation, header.operation);
  EXPECT_EQ(got.has_data, header.has_data);
  EXPECT_EQ(got.wants_ack, header.wants_ack);
  EXPECT_EQ(got.rendezvous_id, header.rendezvous_id);
  EXPECT_EQ(got.tag, header.tag);
  EXPECT_EQ(got.data, header.data);
  EXPECT_EQ(got.length, header.length);
}

TEST(MessageHeader, EveryKindIsReadBack) {
  for (const MessageKind kind : kKinds) {
    for (const unsigned flags : {0u, 1u, 2u, 3u}) {
      MessageHeader header;
      header.kind = kind;
      header.operation = link::MessageOperation::kTagged;
      header.has_data = (flags & 1) != 0;
      header.wants_ack = (flags & 2) != 0;
      header.rendezvous_id = 0x8123'4567;
      header.tag = 0x8123'4567'89AB'CDEF;
      header.data = 0xFEDC'BA98'7654'3210;
      header.length = kind == MessageKind::kAtomic ? kMaxAtomicBytes : 0x8000'0001'0000'0002;
      expect_same(again(header), header);
    }
  }
}

TEST(MessageHeader, EveryOperationIsReadBack) {
  for (unsigned operation = 1; operation <= 9; ++operation) {
    MessageHeader header;
    header.operation = static_cast<link::MessageOperation>(operation);
    expect_same(again(header), header);
  }
}

TEST(MessageHeader, EveryAtomicActionIsReadBack) {
  for (std::size_t form = 0; form < kAtomicForms; ++form) {
    for (std::size_t op = 0; op < kAtomicOps; ++op) {
      for (std::size_t type = 0; type < kAtomicTypes; ++type) {
        MessageHeader header;
        header.kind = MessageKind::kAtomic;
        header.length = 16;
        header.action = {static_cast<AtomicForm>(form), static_cast<AtomicOp>(op),
                         static_cast<AtomicType>(type)};
        const MessageHeader got = again(header);
        expect_same(got, header);
        EXPECT_EQ(got.action.form, header.action.form);
        EXPECT_EQ(got.action.op, header.action.op);
        EXPECT_EQ(got.action.type, header.action.type);
      }
    }
  }
}

TEST(MessageHeader, NumbersStandInNetworkOrderWhereTheHeaderSays) {
  MessageHeader header;
  header.kind = MessageKind::kRts;
  header.operation = link::MessageOperation::kTagged;
  header.has_data = true;
  header.rendezvous_id = 0x0102'0304;
  header.tag = 0x1112'1314'1516'1718;
  header.data = 0x2122'2324'2526'2728;
  header.length = 0x3132'3334'3536'3738;
  std::array<std::byte, kMessageHeader> bytes;
  write_header(header, bytes.data());
  constexpr unsigned kExpected[kMessageHeader] = {2,    2,    1,    0,    1,    2,    3,    4,
                                                  0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
                                                  0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
                                                  0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38};
  for (std::size_t i = 0; i < kMessageHeader; ++i) {
    EXPECT_EQ(std::to_integer<unsigned>(bytes[i]), kExpected[i]) << i;
  }
}

TEST(MessageRange, IsReadBack) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100; ++i) {
    const RemoteRange range{random(), random(), RegionKey{random()}};
    std::array<std::byte, kRange> bytes;
    EXPECT_EQ(write_ranges({&range, 1}, bytes.data()), kRange);
    const RemoteRange got = read_range(bytes.data());
    EXPECT_EQ(got.address, range.address);
    EXPECT_EQ(got.length, range.length);
    EXPECT_EQ(got.key, range.key);
  }
}

TEST(MessageKey, OffersAliasesAndPlainOnesAreToldApart) {
  for (const std::uint32_t number : {0u, 1u, 77u, kNumberBits - 1, kNumberBits}) {
    EXPECT_TRUE(is_receive(receive_key(number)));
    EXPECT_FALSE(is_alias(receive_key(number)));
    EXPECT_EQ(receive_key(number) & kNumberBits, number);
    EXPECT_TRUE(is_alias(alias_key(number)));
    EXPECT_FALSE(is_receive(alias_key(number)));
    EXPECT_EQ(alias_key(number) & kNumberBits, number);
  }
  for (const std::uint32_t plain : {0u, 1u, 0x4000'0000u, kAliasBit - 1}) {
    EXPECT_FALSE(is_receive(plain));
    EXPECT_FALSE(is_alias(plain));
  }
}

}  // namespace
}  // namespace weft::rdm
