// SPDX-License-Identifier: BSD-2-Clause
// Does every message of the connection manager fill its datagram, and come back as it was?
#include "wire/cm_message.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "test_support.h"

namespace weft::wire {
namespace {

template <std::size_t... kIndex>
std::vector<CmMessage> one_of_each(std::index_sequence<kIndex...>) {
  return {CmMessage(std::in_place_index<kIndex>)...};
}

std::vector<CmMessage> one_of_each() {
  return one_of_each(std::make_index_sequence<std::variant_size_v<CmMessage>>());
}

// The fields of every message end where the datagram ends: private data are the last of them.
TEST(CmMessage, FillsItsDatagram) {
  for (CmMessage message : one_of_each()) {
    std::visit([](auto& m) { m.data.back() = std::byte{0x5A}; }, message);
    const auto bytes = write_cm({0, 0, 0, message});
    EXPECT_EQ(bytes.back(), std::byte{0x5A}) << message.index();
    const auto again = parse_cm(bytes);
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(again->message.index(), message.index());
  }
}

// Every bit that has a meaning comes back, wherever it stands.
TEST(CmMessage, IsWrittenAgainAsItWasRead) {
  std::mt19937_64 random(1);
  for (const CmMessage& message : one_of_each()) {
    for (int turn = 0; turn < 50; ++turn) {
      auto bytes = write_cm({static_cast<std::uint16_t>(random()), random(),
                             static_cast<std::uint32_t>(random()), message});
      for (std::size_t i = 24; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(random());
      const auto read = parse_cm(bytes);
      ASSERT_TRUE(read.has_value());
      const auto clean = write_cm(*read);  // without the bits that have none
      const auto again = parse_cm(clean);
      ASSERT_TRUE(again.has_value());
      EXPECT_EQ(write_cm(*again), clean);
    }
  }
}

TEST(CmMessage, PutsARequestWhereTheSpecificationDoes) {
  CmReq req;
  req.local_id = 0x01020304;
  req.service = service_of(kPortSpaceTcp, 7174);
  req.qpn = 0xABCDEF;
  req.responder_resources = 7;
  req.remote_response_timeout = 20;
  req.transport = 1;
  req.flow_control = true;
  req.starting_psn = 0x123456;
  req.retry_count = 5;
  req.pkey = 0xFFFF;
  req.path_mtu = 3;
  req.rnr_retry = 6;
  req.max_cm_retries = 15;
  req.primary.flow_label = 0xFEDCB;
  req.primary.hop_limit = 64;
  req.primary.local_ack_timeout = 17;
  const auto bytes = write_cm({0, 0x1122334455667788, 0, req});
  const auto at = [&](std::size_t offset) { return std::to_integer<int>(bytes[24 + offset]); };
  EXPECT_EQ(at(0), 1);
  EXPECT_EQ(at(3), 4);
  EXPECT_EQ((std::vector<int>{at(8), at(11), at(12), at(13), at(14), at(15)}),
            (std::vector<int>{0, 0, 0x01, 0x06, 0x1C, 0x06}));
  EXPECT_EQ((std::vector<int>{at(32), at(33), at(34), at(35)}),
            (std::vector<int>{0xAB, 0xCD, 0xEF, 7}));
  EXPECT_EQ(at(43), 20 << 3 | 1 << 1 | 1);
  EXPECT_EQ((std::vector<int>{at(44), at(45), at(46), at(47)}),
            (std::vector<int>{0x12, 0x34, 0x56, 5}));
  EXPECT_EQ(at(50), 3 << 4 | 6);
  EXPECT_EQ(at(51), 15 << 4);
  EXPECT_EQ((std::vector<int>{at(88), at(89), at(90)}), (std::vector<int>{0xFE, 0xDC, 0xB0}));
  EXPECT_EQ(at(93), 64);
  EXPECT_EQ(at(95), 17 << 3);
  EXPECT_EQ(std::to_integer<int>(bytes[17]), 0x10);
}

TEST(CmMessage, OfARequestTellsItsTransactionIdAlone) {
  for (const CmMessage& message : one_of_each()) {
    const bool asks =
        std::holds_alternative<CmReq>(message) || std::holds_alternative<CmSidrReq>(message);
    const auto bytes = write_cm({0, 0x0102030405060708, 0, message});
    const auto transaction = transaction_of_request(bytes);
    ASSERT_EQ(transaction.has_value(), asks) << message.index();
    EXPECT_EQ(transaction.value_or(0x0102030405060708), 0x0102030405060708);
    EXPECT_FALSE(transaction_of_request(std::span(bytes).first(255)));
  }
}

TEST(CmMessage, OfAnotherKindIsNoMessage) {
  const auto good = write_cm({0, 1, 0, CmRtu{}});
  EXPECT_TRUE(parse_cm(good).has_value());
  for (const std::size_t at : {0u, 1u, 2u, 3u, 16u, 17u}) {
    auto bytes = good;
    bytes[at] ^= std::byte{0x40};
    EXPECT_FALSE(parse_cm(bytes).has_value()) << at;
  }
  EXPECT_FALSE(parse_cm(std::span(good).first(255)).has_value());
  EXPECT_FALSE(parse_cm({}).has_value());
}

TEST(CmIpHeader, StandsBeforeTheProgramsOwnData) {
  CmIpHeader header;
  header.ip_version = 6;
  header.source_port = 0x1C06;
  header.source.back() = std::byte{9};
  header.destination.front() = std::byte{0x20};
  std::array<std::byte, CmIpHeader::kBytes> bytes{};
  write_ip_header(header, bytes);
  EXPECT_EQ(bytes[1], std::byte{0x60});
  EXPECT_EQ(bytes[3], std::byte{0x06});
  EXPECT_EQ(bytes[19], std::byte{9});
  EXPECT_EQ(bytes[20], std::byte{0x20});
  const CmIpHeader again = parse_ip_header(bytes);
  EXPECT_EQ(again.source_port, header.source_port);
  EXPECT_EQ(again.destination, header.destination);
}

}  // namespace
}  // namespace weft::wire
