// SPDX-License-Identifier: BSD-2-Clause
// Does an endpoint notice, by the kernel's ICMP errors, that a peer's process was killed?
//
// Silent peers are given up after a minute: until() waits for a third of that.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "link/connection.h"
#include "test_support.h"

namespace weft::udp {
namespace {

using namespace testing;

// Runs `body` in a process of its own, and kills it.
class Child {
 public:
  explicit Child(const std::function<void()>& body) : number_(::fork()) {
    EXPECT_GE(number_, 0);
    if (number_ != 0) return;
    body();
    ::_exit(1);
  }
  ~Child() { kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void kill() {
    if (number_ <= 0) return;
    ::kill(number_, SIGKILL);
    ::waitpid(std::exchange(number_, -1), nullptr, 0);
  }

 private:
  pid_t number_;
};

TEST(RdEndpointDeath, AKilledPeersFlowsEnd) {
  for (const std::size_t length : {10, 900}) {
    Peer b;
    Child child([&] {
      Peer a;
      connect(a, b);
      until({&a}, [] { return false; });
    });
    ASSERT_TRUE(until({&b}, [&] { return !b.log.opened.empty(); }));
    link::Flow* const flow = b.flows.emplace_back(b.open(b.log.opened[0].second).value()).get();
    ASSERT_TRUE(until({&b}, [&] { return flow->reached(); }));
    child.kill();
    Bytes bytes = pattern(length, 1);
    send(b, b, *flow, 1, bytes, true);
    ASSERT_TRUE(until({&b}, [&] { return b.ends.has(1); }));
    EXPECT_EQ(b.ends.error_of(1), ECONNRESET);
    EXPECT_EQ(flow->check_peer(b.ends), link::PeerState::kDied);
  }
}

struct Listening final : link::ListenerUser {
  std::vector<std::pair<link::ConnectionNumber, link::ConnectionRequest>> requests;
  void requested(link::ConnectionNumber number, link::ConnectionRequest request) override {
    requests.emplace_back(number, std::move(request));
  }
  void withdrawn(link::ConnectionNumber) override {}
};

struct EndOfConnection final : link::ConnectionUser {
  std::optional<std::uint32_t> source;
  std::shared_ptr<link::Flow> flow;
  bool over = false;
  void connected(std::uint32_t its_source, std::shared_ptr<link::Flow> its_flow,
                 std::span<const std::byte>) override {
    source = its_source;
    flow = std::move(its_flow);
  }
  void failed(int, std::span<const std::byte>) override {}
  void ended() override { over = true; }
};

// The other end says nothing more.
TEST(RdEndpointDeath, AKilledPeersConnectionEnds) {
  Listening listening;
  EndOfConnection end;
  Peer listener;
  Peer b;
  ASSERT_TRUE(listener.endpoint->connections().listen(4, listening));
  Child child([&] {
    Peer a;
    static_cast<void>(a.endpoint->connections().request(listener.address, {}, end));
    until({&a}, [] { return false; });
  });
  ASSERT_TRUE(until({&listener, &b}, [&] { return !listening.requests.empty(); }));
  listener.endpoint->connections().forward(listening.requests[0].first);
  ASSERT_TRUE(b.endpoint->connections().accept(listening.requests[0].second, {}, end));
  ASSERT_TRUE(until({&listener, &b}, [&] { return end.source.has_value(); }));
  child.kill();
  ASSERT_TRUE(until({&listener, &b}, [&] { return end.over; }));
  EXPECT_EQ(b.log.closed, (std::vector<InboxLog::Closed>{{*end.source, true}}));
  end.flow.reset();
}

}  // namespace
}  // namespace weft::udp
