// SPDX-License-Identifier: BSD-2-Clause
// Do messages and partings arrive over sockets, once and in order?
#include "link_udp/rd_endpoint.h"

#include <gtest/gtest.h>

#include <cstring>

#include "test_support.h"

namespace weft::udp {
namespace {

using namespace testing;
using State = link::Outcome::State;

struct RdEndpointTest : ::testing::Test {
  Peer a;
  Peer b;

  ~RdEndpointTest() override { part(a, b); }
  bool both(const std::function<bool()>& holds) { return until({&a, &b}, holds); }
};

// Messages of all sizes, all in flight together.
void exchange(Peer& from, Peer& to) {
  link::Flow* flow = connect(from, to);
  ASSERT_NE(flow, nullptr);
  const std::size_t sizes[] = {0, 1, 64, 8192, 8193, 16384, 16385, 100'000, 3'000'000, 5};
  std::vector<Bytes> sent;
  std::vector<std::uint64_t> pending;
  for (const std::size_t size : sizes) {
    const std::uint64_t tag = sent.size() + 1;
    sent.push_back(pattern(size, tag));
    const link::Outcome outcome = send(from, to, *flow, tag, sent.back());
    ASSERT_EQ(outcome.error, 0);
    if (outcome.state == State::kPending) pending.push_back(tag);
  }
  ASSERT_TRUE(until({&from, &to}, [&] {
    const auto& all = to.log.messages;
    return from.ends.ended_ones.size() == pending.size() && all.size() == sent.size() &&
           std::all_of(all.begin(), all.end(), [](const auto& each) { return each.error >= 0; });
  }));
  for (std::size_t i = 0; i < sent.size(); ++i) expect_message(to.log.messages[i], i + 1, sent[i]);
  for (const std::uint64_t tag : pending) {
    EXPECT_EQ(from.ends.ended_ones[tag], (FlowLog::End{0, 0})) << tag;
  }
  EXPECT_EQ(from.ends.doubled, 0u);
  EXPECT_FALSE(flow->busy());
}

TEST_F(RdEndpointTest, MessagesOfAllSizesArriveWholeAndInOrder) { exchange(a, b); }

TEST(RdEndpoint, OverIpv6Too) {
  const auto local = os::address_of("::1");
  if (!os::UdpSocket::bind(local, {}).ok()) GTEST_SKIP() << "this system has no IPv6 loopback";
  Peer a({}, local);
  Peer b({}, local);
  exchange(a, b);
  part(a, b);
}

TEST_F(RdEndpointTest, ABurstArrivesInOrder) {
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  constexpr std::uint64_t kMessages = 9000;
  unsigned held_back = 0;
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    // Small ones share packets, and must not overtake others.
    std::vector<std::uint64_t> numbers(i % 7 == 0 ? 250 : 1, i);
    const LocalRange sge{numbers.data(), 8 * numbers.size()};
    link::SendRequest request;
    request.tag = i;
    request.sges = {&sge, 1};
    request.length = sge.length;
    while (flow->send(request).state == State::kAgain) {
      ++held_back;
      a.poll();
      b.poll();
    }
  }
  EXPECT_GT(held_back, 0u);
  ASSERT_TRUE(both([&] { return b.log.messages.size() >= kMessages; }));
  for (int i = 0; i < 100; ++i) {
    a.poll();
    b.poll();
  }
  ASSERT_EQ(b.log.messages.size(), kMessages);
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    EXPECT_EQ(b.log.messages[i].arrival.tag, i);
    EXPECT_EQ(std::memcmp(b.log.messages[i].bytes.data(), &i, sizeof i), 0);
  }
}

TEST_F(RdEndpointTest, AnEndpointThatClosesSaysSo) {
  link::Flow* there = connect(a, b);
  link::Flow* back = connect(b, a);
  ASSERT_TRUE(there != nullptr && back != nullptr);
  Bytes bytes = pattern(100, 1);
  send(b, a, *back, 3, bytes);
  b.log.accepts = false;
  Bytes offered = pattern(kEagerLimit + 50'000, 1);
  send(a, b, *there, 1, offered);
  ASSERT_TRUE(both([&] { return b.log.messages.size() == 1 && a.log.messages.size() == 1; }));
  EXPECT_TRUE(a.log.closed.empty());
  b.leave(&a);
  ASSERT_TRUE(until({&a}, [&] { return !a.log.closed.empty() && a.ends.has(1); }));
  EXPECT_EQ(a.log.closed[0], (InboxLog::Closed{a.log.opened[0].first, false}));
  EXPECT_EQ(a.ends.ended_ones[1].error, ECONNRESET);
  EXPECT_EQ(there->check_peer(a.ends), link::PeerState::kLeft);
  EXPECT_EQ(a.log.closed.size(), 1u);
}

// The sender may leave as soon as its last messages are copied: they arrive before its disconnect.
TEST_F(RdEndpointTest, LastWordsAreHeard) {
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  Bytes bytes = pattern(1000, 1);
  for (std::uint64_t i = 0; i < 5; ++i) send(a, b, *flow, i, bytes);
  a.leave(&b);
  ASSERT_TRUE(until({&b}, [&] { return !b.log.closed.empty(); }));
  ASSERT_EQ(b.log.messages.size(), 5u);
  for (std::uint64_t i = 0; i < 5; ++i) expect_message(b.log.messages[i], i, bytes);
  EXPECT_FALSE(b.log.closed[0].died);
}

// What a sender takes back ends at once; the peer hears that it left, not that it died.
TEST_F(RdEndpointTest, AnEndpointThatGivesUpLeavesInGoodOrder) {
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  b.log.accepts = false;
  Bytes bytes = pattern(kEagerLimit + 50'000, 1);
  send(a, b, *flow, 1, bytes);
  ASSERT_TRUE(both([&] { return b.log.messages.size() == 1; }));
  flow->give_up(a.ends);
  EXPECT_EQ(a.ends.ended_ones[1].error, ECONNRESET);
  EXPECT_FALSE(flow->busy());
  b.log.accept(b.log.messages[0]);
  ASSERT_TRUE(both([&] { return b.log.messages[0].error != -1; }));
  EXPECT_EQ(b.log.messages[0].error, ECONNRESET);
  a.leave(&b);
  ASSERT_TRUE(until({&b}, [&] { return !b.log.closed.empty(); }));
  EXPECT_FALSE(b.log.closed[0].died);
}

}  // namespace
}  // namespace weft::udp
