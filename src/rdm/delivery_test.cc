// SPDX-License-Identifier: BSD-2-Clause
// When does a message arrive, where, and when has it ended?
#include <gtest/gtest.h>

#include <algorithm>

#include "simulated_endpoint.h"

namespace weft::rdm::testing {
namespace {

using std::chrono::milliseconds;
using State = link::Outcome::State;
using Closed = InboxLog<RdmEngine>::Closed;

struct DeliveryTest : ::testing::Test {
  World world;
  Endpoint a{world};
  Endpoint b{world};
  bool both(const std::function<bool()>& holds) { return until({&a, &b}, holds); }
};

TEST(Meetings, AreToldBeforeThereIsAFlowAtEitherEnd) {
  World world;
  int met_by_a = 0;
  int met_by_b = 0;
  RdmOptions options;
  options.remote_peer_seen = [&] { ++met_by_a; };
  Endpoint a(world, options);
  options.remote_peer_seen = [&] { ++met_by_b; };
  Endpoint b(world, options);
  a.poll();
  b.poll();
  EXPECT_EQ(met_by_a, 0);
  a.flows.push_back(std::move(a.open(b.address)).value());
  EXPECT_EQ(met_by_a, 1);
  EXPECT_EQ(met_by_b, 0);
  EXPECT_TRUE(until({&a, &b}, [&] { return a.flows[0]->reached(); }));
  EXPECT_GT(met_by_b, 0);
}

TEST_F(DeliveryTest, AnOfferMayBeTakenInPartOrNotAtAll) {
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  Bytes bytes = pattern(200'000, 1);
  b.log.most = 70'001;
  send(a, b, *flow, 2, bytes);
  ASSERT_TRUE(both([&] { return a.ends.has(2); }));
  ASSERT_TRUE(both([&] { return b.log.messages[0].error == 0; }));
  EXPECT_EQ(b.log.messages[0].arrival.length, bytes.size());
  EXPECT_TRUE(b.log.messages[0].bytes == Bytes(bytes.begin(), bytes.begin() + 70'001));
  b.log.accepts = false;
  EXPECT_EQ(send(a, b, *flow, 4, bytes).state, State::kPending);
  ASSERT_TRUE(both([&] { return b.log.messages.size() == 2; }));
  world.pass(milliseconds(1), {&a, &b});
  EXPECT_FALSE(a.ends.has(4));
  EXPECT_TRUE(flow->busy());
  b.engine->acknowledge(b.log.messages[1].arrival.offer);
  ASSERT_TRUE(both([&] { return a.ends.has(4); }));
  EXPECT_EQ(a.ends.ended_ones[4].error, 0);
}

TEST_F(DeliveryTest, UntilDeliveredEndsOnlyWhenItIsAcknowledged) {
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  b.log.acknowledges = false;
  Bytes bytes = pattern(100, 1);
  EXPECT_EQ(send(a, b, *flow, 7, bytes, true).state, State::kPending);
  ASSERT_TRUE(both([&] { return b.log.messages.size() == 1; }));
  EXPECT_TRUE(b.log.messages[0].arrival.wants_ack);
  world.pass(milliseconds(1), {&a, &b});
  EXPECT_FALSE(a.ends.has(7));
  b.engine->acknowledge(b.log.messages[0].arrival.offer);
  ASSERT_TRUE(both([&] { return a.ends.has(7); }));
  EXPECT_EQ(a.ends.ended_ones[7].error, 0);
}

TEST_F(DeliveryTest, BuffersThatMustBeCopiedMayChangeAtOnce) {
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  const Bytes original = pattern(40'000, 1);
  for (std::uint64_t i = 0; i < 10; ++i) {
    Bytes bytes = original;
    EXPECT_EQ(send(a, b, *flow, i, bytes, false, true).state, State::kDone);
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
  }
  ASSERT_TRUE(both([&] { return b.log.messages.size() == 10; }));
  for (std::uint64_t i = 0; i < 10; ++i) expect_message(b.log.messages[i], i, original);
}

TEST_F(DeliveryTest, AReceiverThatTakesNoMoreHoldsSendersBack) {
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  b.log.takes = false;
  Bytes bytes = pattern(9000, 1);
  for (std::uint64_t i = 0; i < 200; ++i) send(a, b, *flow, i, bytes);
  world.pass(milliseconds(1), {&a, &b});
  EXPECT_TRUE(b.log.messages.empty());
  EXPECT_TRUE(a.ends.ended_ones.empty());
  b.log.takes = true;
  ASSERT_TRUE(both([&] { return a.ends.ended_ones.size() == 200; }));
  ASSERT_EQ(b.log.messages.size(), 200u);
  for (std::uint64_t i = 0; i < 200; ++i) expect_message(b.log.messages[i], i, bytes);
}

TEST_F(DeliveryTest, ARefusedSourceFindsNoEndpoint) {
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  b.log.accepts = false;
  Bytes bytes = pattern(kEagerLimit + 50'000, 1);
  send(a, b, *flow, 1, bytes);
  ASSERT_TRUE(both([&] { return b.log.messages.size() == 1; }));
  b.engine->refuse(b.log, b.log.opened[0].first);
  ASSERT_EQ(b.log.closed.size(), 1u);
  EXPECT_EQ(b.log.closed[0], (Closed{b.log.opened[0].first, false}));
  ASSERT_TRUE(both([&] { return flow->check_peer(a.ends) == link::PeerState::kRefuses; }));
  EXPECT_EQ(a.ends.ended_ones[1], (FlowLog::End{ECONNRESET, 0}));
  EXPECT_EQ(send(a, b, *flow, 2, bytes).error, ECONNRESET);
  world.pass(milliseconds(1), {&a, &b});
  EXPECT_EQ(b.log.messages.size(), 1u);
  EXPECT_EQ(b.log.closed.size(), 1u);
}

}  // namespace
}  // namespace weft::rdm::testing
