// SPDX-License-Identifier: BSD-2-Clause
// When does a peer count as dead after an ICMP port unreachable?
#include <gtest/gtest.h>

#include "hostile_test_support.h"

namespace weft::udp {
namespace {

using namespace testing;

constexpr auto kDoubt = std::chrono::milliseconds(1200);  // longer than an unanswered doubt
constexpr unsigned kProbes = 5;

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

  void send_copied(link::Flow& flow, std::size_t length) {
    Bytes bytes = pattern(length, 1);
    const LocalRange piece{bytes.data(), bytes.size()};
    link::SendRequest request;
    request.must_copy = true;
    request.pieces = {&piece, 1};
    request.length = bytes.size();
    ASSERT_NE(flow.send(request).state, link::Outcome::State::kFailed);
  }

  // True when a probe has come, which the stranger has answered: "not supported", as a live peer.
  bool answer_probe() {
    bool found = false;
    for (const FlowMad& said : stranger.hear()) {
      const auto* probe = std::get_if<LapMad>(&said);
      if (probe == nullptr) continue;
      const wire::CmApr apr{probe->remote_id, probe->local_id, 0, 2, {}, {}};
      stranger.send(b, Stranger::message(payload_of(probe->transaction, apr)));
      found = true;
    }
    return found;
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

// It quotes a request of the flow, which its receiver and hosts on the path can forge.
TEST_F(RdEndpointDeathTest, AnErrorEndsNoFlowWhosePeerAnswersTheProbe) {
  link::Flow* flow = answer_connect();
  ASSERT_NE(flow, nullptr);
  const os::SocketAddress at = stranger.socket->address();
  stranger.socket.reset();
  send_copied(*flow, 10);
  b.poll();
  stranger.socket = std::move(os::UdpSocket::bind(at, {})).value();
  ASSERT_TRUE(until({&b}, [&] { return answer_probe(); })) << "an error starts a probe";
  const auto end = std::chrono::steady_clock::now() + kDoubt;
  while (std::chrono::steady_clock::now() < end) {
    b.poll();
    answer_probe();
  }
  EXPECT_EQ(flow->check_peer(b.ends), link::PeerState::kAlive);
}

TEST_F(RdEndpointDeathTest, APeerThatAnswersNoProbeHasDied) {
  for (const std::size_t length : {10, 900}) {
    link::Flow* flow = answer_connect();
    ASSERT_NE(flow, nullptr);
    stranger.socket.reset();
    const auto before = b.sent();
    send_copied(*flow, length);
    ASSERT_TRUE(until({&b}, [&] { return flow->check_peer(b.ends) != link::PeerState::kAlive; }));
    EXPECT_EQ(flow->check_peer(b.ends), link::PeerState::kDied);
    EXPECT_GT(b.sent(), before + kProbes);
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
