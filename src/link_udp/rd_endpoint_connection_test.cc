// SPDX-License-Identifier: BSD-2-Clause
// Do programs' connections work over sockets?
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

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
  link::SendRequest request;
  request.operation = link::MessageOperation::kTagged;
  request.tag = tag;
  request.must_copy = copy;
  request.pieces = {&piece, 1};
  request.length = bytes.size();
  request.cookie = reinterpret_cast<void*>(tag);
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
    const auto before = std::chrono::steady_clock::now();
    ASSERT_TRUE(holds([&] { return asks.error != 0; }));
    EXPECT_EQ(asks.error, ECONNREFUSED);
    EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(2));
  }
}

TEST_F(RdEndpointConnection, ARejectionCarriesData) {
  EndOfConnection& asks = request(listener.address);
  ASSERT_TRUE(holds([&] { return !listening.requests.empty(); }));
  listener.endpoint->connections().reject(listening.requests[0].first, pattern(256, 6));
  ASSERT_TRUE(holds([&] { return asks.error != 0; }));
  EXPECT_EQ(asks.error, ECONNREFUSED);
  EXPECT_TRUE(asks.data == pattern(256, 6));
}

TEST_F(RdEndpointConnection, ASilentAddressTimesOut) {
  auto silent = os::UdpSocket::bind(os::loopback(0), roce::kReliableSocket);
  Options options;
  options.request_timeout = std::chrono::milliseconds(300);
  RdmOptions wanted;
  wanted.device = &options;
  EndOfConnection asks;
  Peer hasty(wanted);
  ASSERT_TRUE(hasty.endpoint->connections().request(silent.value().address(), {}, asks));
  ASSERT_TRUE(until({&hasty}, [&] { return asks.error != 0; }));
  EXPECT_EQ(asks.error, ETIMEDOUT);
}

TEST_F(RdEndpointConnection, TwoHundredConnectionsShareTheSockets) {
  std::vector<std::pair<EndOfConnection*, EndOfConnection*>> all;
  for (int i = 0; i < 200; ++i) all.push_back(connect());
  std::vector<Bytes> bytes;
  for (std::size_t i = 0; i < all.size(); ++i) {
    bytes.push_back(pattern(64, static_cast<unsigned>(i)));
    send(*all[i].second, i, bytes.back(), true);
  }
  ASSERT_TRUE(holds([&] { return a.log.messages.size() == all.size(); }));
  for (const InboxLog::Message& each : a.log.messages) {
    const auto& [asks, answers] = all.at(each.arrival.tag);
    EXPECT_EQ(each.arrival.source, *asks->source);
    EXPECT_TRUE(each.bytes == bytes.at(each.arrival.tag));
  }
  for (const auto& [asks, answers] : all) {
    asks->flow.reset();
    a.endpoint->connections().disconnect(asks->number);
  }
  EXPECT_TRUE(holds([&] {
    return std::ranges::all_of(all, [](const auto& each) { return each.second->over; });
  }));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
std::size_t heap() {
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

// Both ends are in this process.
TEST_F(RdEndpointConnection, AnEndOfAConnectionTakesLittleMemory) {
  constexpr std::size_t kMany = 1000;
  constexpr std::size_t kMostOfAnEnd = 4096;
  std::vector<std::pair<EndOfConnection*, EndOfConnection*>> all;
  std::vector<Bytes> bytes(kMany, pattern(64, 7));
  connect();
  const std::size_t before = heap();
  for (std::size_t i = 0; i < kMany; ++i) all.push_back(connect());
  const std::size_t idle = heap();
  for (std::size_t i = 0; i < kMany; ++i) send(*all[i].second, i, bytes[i], true);
  ASSERT_TRUE(holds([&] { return a.log.messages.size() == kMany; }));
  a.log.messages.clear();
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1200);
  ASSERT_TRUE(holds([&] { return std::chrono::steady_clock::now() > end; }));
  const std::size_t used = heap();
  EXPECT_LT(idle - before, 2 * kMany * kMostOfAnEnd);
  EXPECT_LT(used - before, 2 * kMany * kMostOfAnEnd);
}
#endif

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

// A process that connects, and is killed before it says anything more.
TEST(RdEndpointConnectionDeath, AKilledPeersConnectionEndsSoon) {
  Listening listening;
  EndOfConnection end;
  Peer listener;
  Peer b;
  ASSERT_TRUE(listener.endpoint->connections().listen(4, listening));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Peer a;
    static_cast<void>(a.endpoint->connections().request(listener.address, {}, end));
    until({&a}, [&] { return false; });
    ::_exit(1);
  }
  const auto connected = [&] { return !listening.requests.empty(); };
  ASSERT_TRUE(until({&listener, &b}, connected));
  listener.endpoint->connections().forward(listening.requests[0].first);
  ASSERT_TRUE(b.endpoint->connections().accept(listening.requests[0].second, {}, end));
  ASSERT_TRUE(until({&listener, &b}, [&] { return end.source.has_value(); }));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const auto before = std::chrono::steady_clock::now();
  ASSERT_TRUE(until({&listener, &b}, [&] { return end.over; }));
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(10));
  EXPECT_EQ(b.log.closed, (std::vector<InboxLog::Closed>{{*end.source, true}}));
  end.flow.reset();
}

}  // namespace
}  // namespace weft::udp
