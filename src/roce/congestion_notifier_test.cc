// SPDX-License-Identifier: BSD-2-Clause
// Is a sender told of congestion, and not too often?
#include "roce/congestion_notifier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace weft::roce {
namespace {

using std::chrono::microseconds;
using Bytes = std::array<std::byte, CongestionNotifier::kBytes>;

wire::Route from(std::uint8_t host) {
  wire::Route route;
  route.source = {std::byte{10}, std::byte{0}, std::byte{0}, static_cast<std::byte>(host)};
  return route;
}

TEST(CongestionNotifier, WritesANotificationForTheSendersQueuePair) {
  CongestionNotifier notifier;
  Bytes out;
  out.fill(std::byte{0xEE});
  ASSERT_EQ(notifier.notify(from(1), 0x12'3456, 0, {}, out), out.size());
  const std::uint8_t expected[] = {0x81, 0x00, 0xFF, 0xFF, 0x40, 0x12, 0x34, 0x56, 0, 0, 0, 0};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto want = static_cast<std::byte>(i < sizeof expected ? expected[i] : 0);
    EXPECT_EQ(out[i], want) << "byte " << i;
  }
  std::vector<std::byte> datagram(out.begin(), out.end());
  datagram.resize(datagram.size() + wire::kIcrcBytes);
  wire::Packet packet;
  EXPECT_EQ(wire::parse(datagram, packet), wire::Malformed::kNone);
  EXPECT_TRUE(packet.becn);
}

TEST(CongestionNotifier, PutsTheFlowIdentityOfTheFlowIntoItsReservedBytes) {
  CongestionNotifier notifier;
  Bytes out;
  ASSERT_EQ(notifier.notify(from(1), 7, 0x1234'5678, {}, out), out.size());
  std::vector<std::byte> datagram(out.begin(), out.end());
  datagram.resize(datagram.size() + wire::kIcrcBytes);
  wire::Packet packet;
  ASSERT_EQ(wire::parse(datagram, packet), wire::Malformed::kNone);
  EXPECT_EQ(CongestionNotifier::flow_identity_of(packet), 0x1234'5678U);
  packet.payload = {};
  EXPECT_EQ(CongestionNotifier::flow_identity_of(packet), 0U);
}

TEST(CongestionNotifier, TellsAQueuePairOnceInFiftyMicroseconds) {
  CongestionNotifier notifier;
  Bytes out;
  int reported = 0;
  os::Time now{};
  for (int i = 0; i < 1000; ++i, now += microseconds(1)) {
    if (notifier.notify(from(1), 7, 0, now, out) != 0) ++reported;
  }
  EXPECT_EQ(reported, 1000 / 50);
  EXPECT_EQ(notifier.notify(from(1), 7, 0, now + microseconds(500), out), out.size())
      << "after a while without marks at once";
}

TEST(CongestionNotifier, TellsOthersMeanwhile) {
  CongestionNotifier notifier;
  Bytes out;
  EXPECT_NE(notifier.notify(from(1), 7, 0, {}, out), 0U);
  EXPECT_NE(notifier.notify(from(1), 8, 0, {}, out), 0U);
  EXPECT_NE(notifier.notify(from(2), 7, 0, {}, out), 0U) << "the same number on another host";
  EXPECT_EQ(notifier.notify(from(2), 7, 0, {}, out), 0U);
}

TEST(CongestionNotifier, ForgetsSendersOfOldCnps) {
  CongestionNotifier notifier;
  Bytes out;
  std::size_t most = 0;
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    const os::Time now = os::Time{} + microseconds(i);
    EXPECT_NE(notifier.notify(from(1), i, 0, now, out), 0U);
    most = std::max(most, notifier.remembered());
  }
  EXPECT_LE(most, 200U) << "whatever numbers marked packets bear";
}

}  // namespace
}  // namespace weft::roce
