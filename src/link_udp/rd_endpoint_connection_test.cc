// SPDX-License-Identifier: BSD-2-Clause
// Do programs' connections work over sockets?
#include <gtest/gtest.h>

#include "test_support.h"

namespace weft::udp {
namespace {

using namespace testing;

// Two processes' ports on the loopback: a, which asks, and two of the other one.
struct RdEndpointConnection : ::testing::Test {
  Listening listening;
  std::deque<ConnectionEnd> ends;  // outlive the connections
  Peer a;
  Peer listener;
  Peer b;
  const Status listens = listener.connections->listen(300, listening);

  ~RdEndpointConnection() override {
    for (ConnectionEnd& each : ends) each.flow.reset();
  }
  bool holds(const std::function<bool()>& condition) {
    return until({&a, &listener, &b}, [&] {
      for (ConnectionEnd& each : ends) {
        if (each.flow != nullptr) each.flow->progress(each.source == 0U ? a.ends : b.ends);
      }
      return condition();
    });
  }
  ConnectionEnd& request(const os::SocketAddress& to, const Bytes& data = {}) {
    ConnectionEnd& end = ends.emplace_back();
    end.number = a.connections->request(to, data, end).value();
    return end;
  }
  std::pair<ConnectionEnd*, ConnectionEnd*> connect() {
    ConnectionEnd& asks = request(listener.address, pattern(256, 1));
    EXPECT_TRUE(until({&a, &listener, &b}, [&] { return !listening.requests.empty(); }));
    const auto [number, asked] = std::move(listening.requests.back());
    listening.requests.pop_back();
    EXPECT_TRUE(asked.data == pattern(256, 1));
    EXPECT_EQ(asked.peer, a.address);
    listener.connections->forward(number);
    ConnectionEnd& answers = ends.emplace_back();
    answers.number = b.connections->accept(asked, pattern(256, 2), answers).value();
    EXPECT_TRUE(until({&a, &listener, &b}, [&] { return asks.is_open() && answers.is_open(); }));
    EXPECT_TRUE(asks.data == pattern(256, 2));
    return {&asks, &answers};
  }
};

link::Outcome send(ConnectionEnd& end, std::uint64_t tag, Bytes& bytes, bool copy) {
  const LocalRange sge{bytes.data(), bytes.size()};
  link::SendRequest request = rdm::testing::tagged(tag, {&sge, 1}, bytes.size());
  request.must_copy = copy;
  return end.flow->send(request);
}

TEST_F(RdEndpointConnection, DataGoBothWaysUntilOneEndLeaves) {
  const auto [asks, answers] = connect();
  Bytes there = pattern(1'000'000, 3);
  Bytes back = pattern(1'000'000, 4);
  send(*asks, 1, there, false);
  send(*answers, 2, back, false);
  ASSERT_TRUE(holds([&] {
    return !a.log.messages.empty() && a.log.messages[0].error == 0 && !b.log.messages.empty() &&
           b.log.messages[0].error == 0;
  }));
  EXPECT_TRUE(b.log.messages[0].bytes == there);
  EXPECT_TRUE(a.log.messages[0].bytes == back);
  Bytes last = pattern(100, 5);
  for (std::uint64_t tag = 10; tag < 20; ++tag) {
    ASSERT_EQ(send(*asks, tag, last, true).state, link::Outcome::State::kDone);
  }
  asks->flow.reset();
  a.connections->disconnect(asks->number);
  ASSERT_TRUE(holds([&, end = answers] { return end->ends != 0; }));
  EXPECT_EQ(b.log.messages.size(), 11U);
  EXPECT_EQ(b.log.closed.size(), 1U);
  EXPECT_EQ(asks->ends, 0U);
}

TEST_F(RdEndpointConnection, AnEndpointThatGoesDeliversWhatWasSentAndEndsItsConnections) {
  const auto [asks, answers] = connect();
  Bytes last = pattern(3000, 5);
  for (std::uint64_t tag = 10; tag < 20; ++tag) {
    ASSERT_EQ(send(*asks, tag, last, true).state, link::Outcome::State::kDone);
  }
  asks->flow.reset();
  a.leave(&b);
  ASSERT_TRUE(holds([&, end = answers] { return end->ends != 0; }));
  EXPECT_EQ(b.log.messages.size(), 10U);
  EXPECT_EQ(b.log.closed, (std::vector<InboxLog::Closed>{{answers->source, false}}));
}

TEST_F(RdEndpointConnection, APortWithoutAListenerOrAProcessRefusesAtOnce) {
  os::SocketAddress unused;
  {
    const Peer gone;
    unused = gone.address;
  }
  for (const auto& at : {b.address, unused}) {
    ConnectionEnd& asks = request(at);
    ASSERT_TRUE(holds([&] { return asks.error != 0; }));
    EXPECT_EQ(asks.error, ECONNREFUSED) << "long before the request times out";
  }
}

// The system would choose another source for what goes to the requester.
TEST(RdEndpointConnectionAddress, AnAcceptorAnswersFromTheAddressThatWasAsked) {
  Listening listening;
  ConnectionEnd asks;
  ConnectionEnd answers;
  Peer a;
  Peer listener({}, os::address_of("0.0.0.0", 0));
  Peer b({}, os::address_of("0.0.0.0", 0));
  ASSERT_TRUE(listener.connections->listen(4, listening));
  const auto at = os::address_of("127.0.0.5", listener.address.port());
  ASSERT_TRUE(a.connections->request(at, {}, asks));
  ASSERT_TRUE(until({&a, &listener, &b}, [&] { return !listening.requests.empty(); }));
  ASSERT_TRUE(b.connections->accept(listening.requests[0].second, {}, answers));
  EXPECT_TRUE(until({&a, &listener, &b}, [&] { return asks.is_open() && answers.is_open(); }));
  EXPECT_EQ(a.log.opened.at(0).second, os::address_of("127.0.0.5", b.address.port()));
  asks.flow.reset();
  answers.flow.reset();
}

}  // namespace
}  // namespace weft::udp
