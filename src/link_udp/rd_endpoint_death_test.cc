// SPDX-License-Identifier: BSD-2-Clause
// When does an ICMP port unreachable mean that a peer has died?
#include <gtest/gtest.h>

#include "hostile_test_support.h"

namespace weft::udp {
namespace {

using namespace testing;

// An endpoint, and a peer whose process ends without a word. On the loopback errors come at once.
struct RdEndpointDeathTest : ::testing::Test {
  Peer b;
  Stranger stranger;

  // Lets the endpoint have a flow to the stranger.
  link::Flow* answer_connect() {
    b.flows.push_back(std::move(b.endpoint->connect(stranger.socket->address())).value());
    link::Flow* flow = b.flows.back().get();
    const bool reached = until({&b}, [&] {
      for (const FlowMad& said : stranger.hear()) {
        const auto* asked = std::get_if<ReqMad>(&said);
        if (asked == nullptr) continue;
        stranger.send(b, Stranger::message(stranger.reply_to(*asked)));
      }
      return flow->reached();
    });
    return reached ? flow : nullptr;
  }
};

// The error for a packet that was sent before the peer's bind comes late.
TEST_F(RdEndpointDeathTest, AnErrorFromBeforeThePeerWasThereIsNoProof) {
  const os::SocketAddress at = stranger.socket->address();
  stranger.socket.reset();
  b.flows.push_back(std::move(b.endpoint->connect(at)).value());
  b.poll();
  Peer late({}, at);
  late.flows.push_back(std::move(late.endpoint->connect(b.address)).value());
  ASSERT_TRUE(until({&b, &late}, [&] { return late.flows[0]->reached(); }));
  for (int i = 0; i < 20; ++i) b.poll();
  Bytes bytes = pattern(50, 1);
  udp::testing::send(late, b, *late.flows[0], 1, bytes, true);
  ASSERT_TRUE(until({&b, &late}, [&] { return late.ends.has(1); }));
  EXPECT_EQ(late.ends.ended_ones[1].error, 0);
  EXPECT_TRUE(b.log.closed.empty());
  part(late, b);
}

TEST_F(RdEndpointDeathTest, OneErrorIsEnoughThatQuotesARequest) {
  for (const std::size_t length : {10, 900}) {
    link::Flow* flow = answer_connect();
    ASSERT_NE(flow, nullptr);
    stranger.socket.reset();
    const auto before = b.sent();
    Bytes bytes = pattern(length, 1);
    const LocalRange piece{bytes.data(), bytes.size()};
    link::SendRequest request;
    request.must_copy = true;
    request.pieces = {&piece, 1};
    request.length = bytes.size();
    ASSERT_NE(flow->send(request).state, link::Outcome::State::kFailed);
    ASSERT_TRUE(until({&b}, [&] { return flow->check_peer(b.ends) != link::PeerState::kAlive; }));
    EXPECT_EQ(flow->check_peer(b.ends), link::PeerState::kDied);
    EXPECT_EQ(b.sent(), before + 1);
    stranger = Stranger();
  }
}

// A packet that any host may have been sent can be quoted by any host.
TEST_F(RdEndpointDeathTest, OneErrorIsNotEnoughThatQuotesNothingOfTheFlow) {
  ASSERT_TRUE(stranger.agree(b));
  stranger.rep.me.context ^= 0x8000;
  stranger.send(b, stranger.message(0, {}, 10));
  stranger.socket.reset();
  const auto before = b.sent();
  b.poll();
  ASSERT_EQ(b.port->stats().of(Stat::kUnknownFlow), 1U);
  ASSERT_EQ(b.sent(), before + 1) << "b rejects a packet of an unknown flow";
  for (int i = 0; i < 3; ++i) b.poll();
  const bool asked = b.sent() != before + 1;  // meanwhile, and heard of that, too
  EXPECT_TRUE(b.log.closed.empty() || asked);
}

}  // namespace
}  // namespace weft::udp
