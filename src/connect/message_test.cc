// SPDX-License-Identifier: BSD-2-Clause
// Does every message come out as it went in, and nothing else at all?
#include "connect/message.h"

#include <gtest/gtest.h>

#include <set>

#include "test_support.h"

namespace weft::connect {
namespace {

using testing::Bytes;
using testing::bytes_of;
using testing::loopback;

constexpr ConnectKind kKinds[] = {ConnectKind::kRequest, ConnectKind::kPending,
                                  ConnectKind::kReject,  ConnectKind::kReply,
                                  ConnectKind::kReady,   ConnectKind::kFarewell};

ConnectMessage sample(ConnectKind kind, std::size_t data = 3) {
  return {kind, 0x1122334455667788, 0x99aabbccddeeff00, loopback(4791), Bytes(data, std::byte{7})};
}

TEST(ConnectMessage, ComesOutAsItWentIn) {
  for (const ConnectKind kind : kKinds) {
    for (const std::size_t length : {std::size_t{0}, std::size_t{1}, kMaxData}) {
      const ConnectMessage sent = sample(kind, length);
      const auto got = decode(encode(sent));
      ASSERT_TRUE(got);
      EXPECT_EQ(got->kind, sent.kind);
      EXPECT_EQ(got->origin, sent.origin);
      EXPECT_EQ(got->target, sent.target);
      EXPECT_EQ(got->data, sent.data);
      const bool named = kind == ConnectKind::kRequest || kind == ConnectKind::kReply;
      EXPECT_EQ(got->name, named ? sent.name : os::SocketAddress());
    }
  }
}

TEST(ConnectMessage, LooksAsDescribed) {
  const Bytes bytes = encode(sample(ConnectKind::kReply));
  ASSERT_EQ(bytes.size(), kHeaderBytes + 3);
  EXPECT_EQ(bytes[0], std::byte{kVersion});
  EXPECT_EQ(bytes[1], std::byte{4});
  EXPECT_EQ(bytes[2], std::byte{3});
  EXPECT_EQ(bytes[8], std::byte{0x88});
  EXPECT_EQ(bytes[16], std::byte{0x00});
  EXPECT_EQ(bytes[17], std::byte{0xff});
  EXPECT_EQ(bytes[kHeaderBytes], std::byte{7});
}

TEST(ConnectMessage, DataThatAreTooLongAreCutOff) {
  const auto got = decode(encode(sample(ConnectKind::kRequest, kMaxData + 1)));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->data.size(), kMaxData);
}

TEST(ConnectMessage, EveryOtherLengthIsRefused) {
  const Bytes whole = encode(sample(ConnectKind::kReply));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(decode(std::span(whole).first(length))) << length;
  }
  Bytes longer = whole;
  longer.push_back({});
  EXPECT_FALSE(decode(longer));
  longer.resize(kHeaderBytes + kMaxData + 1);
  longer[2] = std::byte{(kMaxData + 1) & 0xff};
  longer[3] = std::byte{(kMaxData + 1) >> 8};
  EXPECT_FALSE(decode(longer));
}

TEST(ConnectMessage, OtherVersionsAndKindsAreRefused) {
  for (const int place : {0, 1}) {
    for (const int value : {0, 7, 255}) {
      Bytes bytes = encode(sample(ConnectKind::kReply));
      bytes[place] = static_cast<std::byte>(value);
      EXPECT_FALSE(decode(bytes)) << place << " " << value;
    }
  }
}

TEST(ConnectMessage, TokensAndNamesThatAreNeededMustBeThere) {
  for (const ConnectKind kind : kKinds) {
    ConnectMessage message = sample(kind);
    message.origin = 0;
    EXPECT_FALSE(decode(encode(message)));
    message = sample(kind);
    message.target = 0;
    const bool first = kind == ConnectKind::kRequest || kind == ConnectKind::kPending ||
                       kind == ConnectKind::kReject;
    EXPECT_EQ(decode(encode(message)).has_value(), first);
    message = sample(kind);
    message.name = {};
    const bool nameless = kind != ConnectKind::kRequest && kind != ConnectKind::kReply;
    EXPECT_EQ(decode(encode(message)).has_value(), nameless);
    message.name = loopback(0);
    EXPECT_EQ(decode(encode(message)).has_value(), nameless);
  }
}

TEST(ConnectMessage, ItNamesTheEndThatHasNotAcceptedItsSource) {
  const auto addressee = [](ConnectKind kind) { return addressee_of(encode(sample(kind))); };
  for (const ConnectKind kind :
       {ConnectKind::kPending, ConnectKind::kReject, ConnectKind::kReply}) {
    EXPECT_EQ(addressee(kind), sample(kind).origin);
  }
  EXPECT_EQ(addressee(ConnectKind::kReady), sample(ConnectKind::kReady).target);
  EXPECT_EQ(addressee(ConnectKind::kRequest), 0u);
  EXPECT_EQ(addressee(ConnectKind::kFarewell), 0u);
  const Bytes whole = encode(sample(ConnectKind::kReply, 0));
  EXPECT_EQ(addressee_of(std::span(whole).first(kHeaderBytes - 1)), 0u);
}

TEST(ConnectMessage, NoTwoTokensAreAlike) {
  std::set<Token> tokens;
  for (int i = 0; i < 1000; ++i) tokens.insert(new_token());
  EXPECT_EQ(tokens.size(), 1000u);
  EXPECT_FALSE(tokens.contains(0));
}

}  // namespace
}  // namespace weft::connect
