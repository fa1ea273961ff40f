// SPDX-License-Identifier: BSD-2-Clause
// Do programs' connections work over sockets?
#include <gtest/gtest.h>

#include <optional>

#include "link/connection.h"
#include "test_support.h"

namespace weft::udp {
namespace {

using namespace testing;

struct Listening final : link::ListenerUser {
  std::vector<std::pair<link::ConnectionNumber, link::ConnectionRequest>> requests;
  void requested(link::ConnectionNumber number, link::ConnectionRequest request) override {
    requests.emplace_back(number, std::move(request));
  }
  void withdrawn(link::ConnectionNumber) override {}
};

struct EndOfConnection final : link::ConnectionUser {
  link::ConnectionNumber number = 0;
  std::optional<std::uint32_t> source;
  std::shared_ptr<link::Flow> flow;
  Bytes data;
  int error = 0;
  bool over = false;
  void connected(std::uint32_t its_source, std::shared_ptr<link::Flow> its_flow,
                 std::span<const std::byte> its_data) override {
    source = its_source;
    flow = std::move(its_flow);
    data.assign(its_data.begin(), its_data.end());
  }
  void failed(int its_error, std::span<const std::byte> its_data) override {
    error = its_error;
    data.assign(its_data.begin(), its_data.end());
  }
  void ended() override { over = true; }
};

// Two processes' ports on the loopback: a, which asks, and two of the other one.
struct RdEndpointConnection : ::testing::Test {
  Listening listening;
  std::deque<EndOfConnection> ends;  // outlive the connections
  Peer a;
  Peer listener;
  Peer b;
  const Status listens = listener.endpoint->connections().listen(300, listening);

  ~RdEndpointConnection() override {
    for (EndOfConnection& each : ends) each.flow.reset();
  }
  bool holds(const std::function<bool()>& condition) {
    return until({&a, &listener, &b}, [&] {
      for (EndOfConnection& each : ends) {
        if (each.flow != nullptr) each.flow->progress(each.source == 0U ? a.ends : b.ends);
      }
      return condition();
    });
  }
  EndOfConnection& request(const os::SocketAddress& to, const Bytes& data = {}) {
    EndOfConnection& end = ends.emplace_back();
    end.number = a.endpoint->connections().request(to, data, end).value();
    return end;
  }
  std::pair<EndOfConnection*, EndOfConnection*> connect() {
    EndOfConnection& asks = request(listener.address, pattern(256, 1));
    EXPECT_TRUE(until({&a, &listener, &b}, [&] { return !listening.requests.empty(); }));
    const auto [number, asked] = std::move(listening.requests.back());
    listening.requests.pop_back();
    EXPECT_TRUE(asked.data == pattern(256, 1));
    EXPECT_EQ(asked.peer, a.address);
    listener.endpoint->connections().forward(number);
    EndOfConnection& answers = ends.emplace_back();
    answers.number = b.endpoint->connections().accept(asked, pattern(256, 2), answers).value();
    EXPECT_TRUE(until({&a, &listener, &b}, [&] { return asks.source && answers.source; }));
    EXPECT_TRUE(asks.data == pattern(256, 2));
    return {&asks, &answers};
  }
};

link::Outcome send(EndOfConnection& end, std::uint64_t tag, Bytes& bytes, bool copy) {
  const LocalRange piece{bytes.data(), bytes.size()};
  link::SendRequest request = rdm::testing::tagged(tag, {&piece, 1}, bytes.size());
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
  a.endpoint->connections().disconnect(asks->number);
  ASSERT_TRUE(holds([&, end = answers] { return end->over; }));
  EXPECT_EQ(b.log.messages.size(), 11U);
  EXPECT_EQ(b.log.closed.size(), 1U);
  EXPECT_FALSE(asks->over);
}

TEST_F(RdEndpointConnection, AnEndpointThatGoesDeliversWhatWasSentAndEndsItsConnections) {
  const auto [asks, answers] = connect();
  Bytes last = pattern(3000, 5);
  for (std::uint64_t tag = 10; tag < 20; ++tag) {
    ASSERT_EQ(send(*asks, tag, last, true).state, link::Outcome::State::kDone);
  }
  asks->flow.reset();
  a.leave(&b);
  ASSERT_TRUE(holds([&, end = answers] { return end->over; }));
  EXPECT_EQ(b.log.messages.size(), 10U);
  EXPECT_EQ(b.log.closed, (std::vector<InboxLog::Closed>{{*answers->source, false}}));
}

TEST_F(RdEndpointConnection, APortWithoutAListenerOrAProcessRefusesAtOnce) {
  os::SocketAddress unused;
  {
    const Peer gone;
    unused = gone.address;
  }
  for (const auto& at : {b.address, unused}) {
    EndOfConnection& asks = request(at);
    ASSERT_TRUE(holds([&] { return asks.error != 0; }));
    EXPECT_EQ(asks.error, ECONNREFUSED) << "long before the request times out";
  }
}

// The system would choose another source for what goes to the requester.
TEST(RdEndpointConnectionAddress, AnAcceptorAnswersFromTheAddressThatWasAsked) {
  Listening listening;
  EndOfConnection asks;
  EndOfConnection answers;
  Peer a;
  Peer listener({}, os::address_of("0.0.0.0", 0));
  Peer b({}, os::address_of("0.0.0.0", 0));
  ASSERT_TRUE(listener.endpoint->connections().listen(4, listening));
  const auto at = os::address_of("127.0.0.5", listener.address.port());
  ASSERT_TRUE(a.endpoint->connections().request(at, {}, asks));
  ASSERT_TRUE(until({&a, &listener, &b}, [&] { return !listening.requests.empty(); }));
  ASSERT_TRUE(b.endpoint->connections().accept(listening.requests[0].second, {}, answers));
  EXPECT_TRUE(until({&a, &listener, &b}, [&] { return asks.source && answers.source; }));
  EXPECT_EQ(a.log.opened.at(0).second, os::address_of("127.0.0.5", b.address.port()));
  asks.flow.reset();
  answers.flow.reset();
}

}  // namespace
}  // namespace weft::udp
