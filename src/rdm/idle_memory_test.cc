// SPDX-License-Identifier: BSD-2-Clause
// How much memory do peers and connections take while nothing is sent?
#include <gtest/gtest.h>

#include <deque>

#include "heap_use.h"
#include "simulated_endpoint.h"
#include "simulated_port.h"

namespace weft::rdm::testing {
namespace {

using std::chrono::seconds;

constexpr std::size_t kLimit = 4096;  // bytes at each end

struct IdleMemory : ::testing::Test {
  void SetUp() override {
    if (!kOwnAllocator) GTEST_SKIP() << "a sanitizer's allocator takes more";
  }
};

// One that all others talk to, and that talks to all of them.
TEST_F(IdleMemory, PeersTakeLittleAfterHavingSentMuch) {
  constexpr std::size_t kPeers = 100;
  World world;
  Endpoint hub(world);
  std::deque<Endpoint> peers;
  for (std::size_t i = 0; i < kPeers; ++i) peers.emplace_back(world);
  const std::size_t before = heap_use();
  Bytes bytes = pattern(100'000, 1);
  std::size_t sent = 0;
  for (Endpoint& peer : peers) {
    for (Endpoint* from : {&hub, &peer}) {
      Endpoint& to = from == &hub ? peer : hub;
      link::Flow* flow = connect(*from, to);
      ASSERT_NE(flow, nullptr);
      for (const std::size_t length : {8, 8000, 16'000, 100'000}) {
        const auto outcome = send(*from, to, *flow, ++sent, std::span(bytes).first(length));
        ASSERT_TRUE(until({from, &to}, [&] {
          return outcome.state == link::Outcome::State::kDone || from->ends.has(sent);
        }));
      }
    }
  }
  // Without the messages that the test has kept.
  const auto clear = [](Endpoint& peer) {
    std::deque<InboxLog<RdmEngine>::Message>().swap(peer.log.messages);
    peer.ends.ended_ones.clear();
  };
  clear(hub);
  for (Endpoint& peer : peers) {
    clear(peer);
    world.pass(std::chrono::milliseconds(20), {&hub, &peer});
  }
  // Memory for work is given back after a while.
  for (int i = 0; i < 20; ++i) {
    world.pass(std::chrono::milliseconds(100), {&hub});
    for (Endpoint& peer : peers) peer.poll();
  }
  EXPECT_LT((heap_use() - before) / (2 * kPeers), kLimit);
}

TEST_F(IdleMemory, ConnectionsTakeLittle) {
  constexpr std::size_t kMany = 1000;
  ConnectedWorld world({}, 0, 1);
  ConnectedPort& listener = world.add({}, 0, 40'000);
  ConnectedPort& acceptor = world.add({}, 0, 40'001);
  ConnectedPort& a = world.add({}, 1, 40'002);
  ASSERT_TRUE(listener.connections->listen(300, listener));
  Bytes bytes = pattern(64, 7);
  const auto connect_one = [&] {
    ConnectionEnd& asks = a.request(listener.host.address, pattern(256, 1));
    world.wake();
    EXPECT_TRUE(world.until([&] { return !listener.requests.empty(); }));
    ConnectionEnd* const answers = acceptor.accept(listener, listener.requests.begin()->first);
    world.wake();
    EXPECT_TRUE(world.until([&] { return asks.is_open() && answers->is_open(); }));
    return answers;
  };
  connect_one();
  std::vector<ConnectionEnd*> all;
  const std::size_t before = heap_use();
  for (std::size_t i = 0; i < kMany; ++i) all.push_back(connect_one());
  EXPECT_LT(heap_use() - before, 2 * kMany * kLimit);
  for (ConnectionEnd* each : all) acceptor.send(*each, 1, bytes);
  world.wake();
  ASSERT_TRUE(world.until([&] { return a.messages.size() == kMany; }));
  std::deque<ConnectedPort::Received>().swap(a.messages);
  world.go_on_for(seconds(2));
  EXPECT_LT(heap_use() - before, 2 * kMany * kLimit);
}

}  // namespace
}  // namespace weft::rdm::testing
