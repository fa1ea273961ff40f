// SPDX-License-Identifier: BSD-2-Clause
// What becomes of messages that are sent before the other end has answered, or as it leaves?
#include <gtest/gtest.h>

#include "simulated_endpoint.h"

namespace weft::rdm::testing {
namespace {

using std::chrono::milliseconds;

struct EarlyMessages {
  World world;
  Endpoint a{world};
  Endpoint b{world};
  Bytes bytes = pattern(100, 1);

  // Begins a flow with a message, without a poll.
  link::Flow& say_first(std::span<std::byte> words) {
    a.flows.push_back(std::move(a.open(b.address)).value());
    send(a, b, *a.flows.back(), 1, words);
    return *a.flows.back();
  }
};
struct EarlyMessagesTest : ::testing::Test, EarlyMessages {};

TEST(EarlyMessagesOfAllLengths, ComeOnceAndInOrder) {
  for (const std::size_t length : {std::size_t{1}, std::size_t{256}, std::size_t{20'000}}) {
    EarlyMessages early;
    const auto& last_received = early.b.log.messages;
    Bytes words = pattern(length, 1);
    link::Flow& flow = early.say_first(words);
    early.world.pass(milliseconds(20), {&early.a});  // asks several times
    EXPECT_FALSE(flow.reached());
    for (std::uint64_t tag = 2; tag <= 3; ++tag) send(early.a, early.b, flow, tag, early.bytes);
    ASSERT_TRUE(until({&early.a, &early.b}, [&] { return last_received.size() == 3; }));
    early.world.pass(milliseconds(10), {&early.a, &early.b});
    ASSERT_EQ(last_received.size(), 3u);
    EXPECT_TRUE(last_received[0].bytes == words);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(last_received[i].arrival.tag, i + 1);
    EXPECT_TRUE(flow.reached());
    ASSERT_EQ(early.b.log.opened.size(), 1u);
    EXPECT_TRUE(early.b.log.opened[0].second == early.a.address);
    EXPECT_TRUE(early.a.log.opened.empty());
  }
}

TEST_F(EarlyMessagesTest, WaitForAnEndThatTakesNoMore) {
  b.log.takes = false;
  say_first(bytes);
  world.pass(milliseconds(10), {&a, &b});
  EXPECT_TRUE(b.log.messages.empty());
  b.log.takes = true;
  EXPECT_TRUE(until({&a, &b}, [&] { return b.log.messages.size() == 1; }));
}

// A peer that has taken a packet and leaves, and whose acknowledgement is lost.
TEST_F(EarlyMessagesTest, ThatADisconnectAcknowledgesWereSent) {
  Stranger stranger(world);
  a.flows.push_back(std::move(a.open(stranger.address)).value());
  for (std::uint64_t tag = 1; tag <= 2; ++tag) {
    const LocalRange sge{bytes.data(), bytes.size()};
    ASSERT_EQ(a.flows[0]->send(tagged(tag, {&sge, 1}, bytes.size())).state,
              link::Outcome::State::kPending);
  }
  const auto asked = stranger.await<ReqMad>(a);
  ASSERT_TRUE(asked);
  const RepMad rep = stranger.reply_to(*asked, Psn(Psn::kMask));
  const std::uint64_t before = a.sent();
  stranger.say(a, rep);
  ASSERT_TRUE(until({&a}, [&] { return a.sent() >= before + 3; }));
  EXPECT_TRUE(a.ends.ended_ones.empty());
  stranger.say(a, DreqMad{rep.local_id,
                          asked->local_id,
                          asked->transaction,
                          asked->me.queue_pair,
                          {rep.first.after(1)}});
  ASSERT_TRUE(until({&a}, [&] { return a.ends.has(2); }));
  EXPECT_EQ(a.ends.ended_ones.at(1), (FlowLog::End{0, 0}));
  EXPECT_EQ(a.ends.ended_ones.at(2), (FlowLog::End{ECONNRESET, 0}));
}

}  // namespace
}  // namespace weft::rdm::testing
