// SPDX-License-Identifier: BSD-2-Clause
// Does an endpoint notice, by the kernel's ICMP errors, that a peer's process was killed?
//
// Silent peers are given up after a minute: until() waits for a third of that.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

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
  Bytes bytes = pattern(900, 1);
  send(b, b, *flow, 1, bytes, true);
  ASSERT_TRUE(until({&b}, [&] { return b.ends.has(1) && !b.log.closed.empty(); }));
  EXPECT_EQ(b.ends.error_of(1), ECONNRESET);
  EXPECT_EQ(flow->check_peer(b.ends), link::PeerState::kDied);
  EXPECT_TRUE(b.log.closed[0].died);
}

// The other end says nothing more.
TEST(RdEndpointDeath, AKilledPeersConnectionEnds) {
  Listening listening;
  ConnectionEnd end;
  Peer listener;
  Peer b;
  ASSERT_TRUE(listener.connections->listen(4, listening));
  Child child([&] {
    Peer a;
    static_cast<void>(a.connections->request(listener.address, {}, end));
    until({&a}, [] { return false; });
  });
  ASSERT_TRUE(until({&listener, &b}, [&] { return !listening.requests.empty(); }));
  listener.connections->forward(listening.requests[0].first);
  ASSERT_TRUE(b.connections->accept(listening.requests[0].second, {}, end));
  ASSERT_TRUE(until({&listener, &b}, [&] { return end.is_open(); }));
  child.kill();
  ASSERT_TRUE(until({&listener, &b}, [&] { return end.ends != 0; }));
  EXPECT_EQ(b.log.closed, (std::vector<InboxLog::Closed>{{end.source, true}}));
  end.flow.reset();
}

}  // namespace
}  // namespace weft::udp
