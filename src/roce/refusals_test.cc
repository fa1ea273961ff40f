// SPDX-License-Identifier: BSD-2-Clause
// Is there a limit to the answers that forged requests draw, and do they say what they should?
#include "roce/refusals.h"

#include <gtest/gtest.h>

#include "os/loopback_support.h"
#include "roce/route.h"
#include "wire/icrc.h"

namespace weft::roce {
namespace {

using std::chrono::milliseconds;
constexpr AnswerRates kRates;
constexpr os::Time kStart{std::chrono::hours(1)};

unsigned sent_to(Refusals& refusals, const os::SocketAddress& source, os::Time now,
                 unsigned asked) {
  unsigned sent = 0;
  for (unsigned i = 0; i < asked; ++i) sent += refusals.may_send(source, now);
  return sent;
}

TEST(Refusals, OneSourceHasALimitInEachSecond) {
  Refusals refusals;
  const auto source = os::address_of("192.0.2.1", 4791);
  EXPECT_EQ(sent_to(refusals, source, kStart, 1000), kRates.per_source_and_second);
  EXPECT_EQ(sent_to(refusals, source, kStart + milliseconds(999), 1000), 0U);
  EXPECT_EQ(sent_to(refusals, source, kStart + milliseconds(1000), 1000),
            kRates.per_source_and_second);
}

TEST(Refusals, AllSourcesTogetherHaveOne) {
  Refusals refusals;
  unsigned sent = 0;
  for (int i = 0; i < 60'000; ++i) {
    const std::string host = "10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250);
    sent += refusals.may_send(os::address_of(host, 4791), kStart);
  }
  EXPECT_EQ(sent, kRates.per_second);
}

TEST(Refusals, TheRefusedDoNotUseUpTheLimitOfAll) {
  Refusals refusals;
  sent_to(refusals, os::address_of("192.0.2.1", 4791), kStart, 100'000);
  unsigned others = 0;
  for (int i = 0; i < 8; ++i) {
    const auto other = os::address_of("198.51.100." + std::to_string(i), 4791);
    others += sent_to(refusals, other, kStart, 1);
  }
  EXPECT_GE(others, 7U) << "one may share the group of the first by chance";
}

TEST(Refusals, TheAnswerIsAPacketOfQueuePairOne) {
  Refusals refusals;
  for (const char* host : {"192.0.2.1", "2001:db8::1"}) {
    const auto to = os::address_of(host, 4791);
    const auto from = os::address_of(to.family() == AF_INET ? "192.0.2.2" : "2001:db8::2", 4791);
    wire::CmDrep drep;
    drep.remote_id = 77;
    const auto bytes = refusals.write({.transaction = 5, .message = drep}, from, to, 0x1234);
    EXPECT_EQ(bytes.size(), 280U);
    EXPECT_TRUE(wire::check_icrc(route_between(from, to), bytes));
    wire::Packet packet;
    ASSERT_EQ(wire::parse(bytes, packet), wire::Malformed::kNone);
    EXPECT_EQ(packet.destination, 0x1234U);
    EXPECT_EQ(packet.source, wire::kCmQpn);
    EXPECT_EQ(packet.queue_key, wire::kCmQueueKey);
    const auto mad = wire::parse_cm(packet.payload);
    ASSERT_TRUE(mad);
    EXPECT_EQ(mad->transaction, 5U);
    EXPECT_EQ(std::get<wire::CmDrep>(mad->message).remote_id, 77U);
  }
}

}  // namespace
}  // namespace weft::roce
