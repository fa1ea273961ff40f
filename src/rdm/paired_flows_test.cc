// SPDX-License-Identifier: BSD-2-Clause
// Are connections of programs made, used and ended as both ends were told?
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "bytes_test_support.h"
#include "simulated_port.h"

namespace weft::rdm::testing {
namespace {

using roce::testing::pattern;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Packets that get through a hole.
constexpr std::size_t kHole = wire::kMaxHeaderBytes + transport::kSurePathMtu + wire::kIcrcBytes;

bool is_large(const roce::Path&, const Bytes& bytes) { return bytes.size() > kHole; }

// A listener and an acceptor are ports of one host, the requester is one of another.
struct PairedFlowsTest : ::testing::Test {
  static RdmOptions options() {
    static const Options device = [] {
      Options patient;
      patient.peer_timeout = seconds(30);
      return patient;
    }();
    RdmOptions options;
    options.device = &device;
    options.eager_limit = 4096;
    options.raise_interval = milliseconds(500);
    return options;
  }

  // A connection whose request and acceptance carried those data.
  std::pair<ConnectionEnd*, ConnectionEnd*> connect(const Bytes& asks = {},
                                                    const Bytes& answers = {}) {
    ConnectionEnd& a = requester.request(listener.host.address, asks);
    world.wake();
    EXPECT_TRUE(world.until([&] { return !listener.requests.empty(); }, seconds(10)));
    const auto number = listener.requests.begin()->first;
    EXPECT_EQ(listener.requests.begin()->second.data, asks);
    ConnectionEnd& b = *acceptor.accept(listener, number, answers);
    world.wake();
    EXPECT_TRUE(world.until([&] { return a.is_open() && b.is_open(); }, seconds(10)));
    EXPECT_EQ(a.data, answers);
    return {&a, &b};
  }
  bool until(const std::function<bool()>& holds, os::Time::duration limit = seconds(10)) {
    world.wake();
    return world.until(holds, limit);
  }
  // Nothing is left of any connection.
  void expect_nothing_left() {
    world.wake();
    world.go_on_for(seconds(30));
    EXPECT_TRUE(world.is_quiet());
    const auto [a, b] = connect();
    EXPECT_EQ(a->source, 0U) << "numbers of sources were not given back";
    EXPECT_EQ(b->source, 0U);
  }

  Weather weather;
  ConnectedWorld world{weather, 0, 1};
  ConnectedPort& listener = world.add(options(), 0, 40'000);
  ConnectedPort& acceptor = world.add(options(), 0, 40'001);
  ConnectedPort& requester = world.add(options(), 1, 40'002);
  const Status listens = listener.connections->listen(16, listener);
};

TEST_F(PairedFlowsTest, OneConnectionIsThreeMessages) {
  const auto before = world.network.packets();
  connect();
  EXPECT_EQ(world.network.packets() - before, 3U);
  EXPECT_EQ(requester.opened.size(), 1U);
  EXPECT_EQ(acceptor.opened.size(), 1U);
  EXPECT_TRUE(listener.opened.empty());
}

TEST_F(PairedFlowsTest, RequestAndAcceptanceCarryUpTo256Bytes) {
  for (const std::size_t length : {0, 1, 92, 93, 255, 256}) {
    const auto [a, b] = connect(pattern(length, 1), pattern(length, 2));
    requester.leave(*a);
    EXPECT_TRUE(until([&, end = b] { return end->ends == 1; }));
    acceptor.leave(*b);
  }
  const Bytes long_data(257);
  ConnectionEnd end;
  const auto refused = requester.connections->request(listener.host.address, long_data, end);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, EINVAL);
  expect_nothing_left();
}

TEST_F(PairedFlowsTest, ARejectionCarriesUpTo256Bytes) {
  for (const std::size_t length : {0, 1, 146, 147, 256}) {
    ConnectionEnd& a = requester.request(listener.host.address);
    ASSERT_TRUE(until([&] { return !listener.requests.empty(); }));
    listener.connections->reject(listener.requests.begin()->first, pattern(length, 3));
    listener.requests.clear();
    ASSERT_TRUE(until([&] { return a.failures != 0; }));
    EXPECT_EQ(a.error, ECONNREFUSED);
    EXPECT_EQ(a.data, pattern(length, 3));
  }
  expect_nothing_left();
}

TEST_F(PairedFlowsTest, AnyPortOfTheHostMayTurnARequestDown) {
  ConnectionEnd& a = requester.request(listener.host.address);
  ASSERT_TRUE(until([&] { return !listener.requests.empty(); }));
  const auto [number, request] = *listener.requests.begin();
  listener.connections->forward(number);
  acceptor.connections->reject(request);
  listener.requests.clear();
  ASSERT_TRUE(until([&] { return a.failures != 0; }));
  EXPECT_EQ(a.error, ECONNREFUSED);
  EXPECT_TRUE(a.data.empty());
}

TEST_F(PairedFlowsTest, DataGoBothWaysWhateverTheirLength) {
  const auto [a, b] = connect();
  std::vector<Bytes> there;
  std::vector<Bytes> back;
  for (const std::size_t length : {0, 1, 1000, 4096, 4097, 100'000}) {
    there.push_back(pattern(length, 4));
    back.push_back(pattern(length, 5));
  }
  for (std::size_t i = 0; i < there.size(); ++i) {
    const bool copies = there[i].size() <= 1000;
    EXPECT_NE(requester.send(*a, i, there[i], copies).state, link::Outcome::State::kFailed);
    EXPECT_NE(acceptor.send(*b, i, back[i], copies).state, link::Outcome::State::kFailed);
  }
  const auto whole = [](const ConnectedPort& port, std::uint32_t source,
                        const std::vector<Bytes>& sent) {
    const auto got = port.from(source);
    if (got.size() != sent.size()) return false;
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (got[i].error != 0 || got[i].tag != i || got[i].bytes != sent[i]) return false;
    }
    return true;
  };
  EXPECT_TRUE(until([&, a = a, b = b] {
    return whole(acceptor, b->source, there) && whole(requester, a->source, back);
  }));
}

TEST_F(PairedFlowsTest, MemoryIsAccessedBothWays) {
  const auto [a, b] = connect();
  Bytes memory = pattern(20'000, 6);
  const auto region = world.regions().add(77, memory, Access::kRemoteRead | Access::kRemoteWrite);
  for (const auto& [port, end] : {std::pair(&requester, a), std::pair(&acceptor, b)}) {
    for (const bool write : {true, false}) {
      Bytes bytes = pattern(10'000, write ? 7 : 8);
      const LocalRange local{bytes.data(), bytes.size()};
      const RemoteRange remote{write ? 0U : 10'000U, bytes.size(), RegionKey{77}};
      link::AccessRequest access;
      access.write = write;
      access.local = {&local, 1};
      access.remote = {&remote, 1};
      access.length = bytes.size();
      access.cookie = &bytes;
      ASSERT_EQ(end->flow->access(access).state, link::Outcome::State::kPending);
      ASSERT_TRUE(until([&, port = port] { return port->sent.contains(&bytes); }));
      EXPECT_EQ(port->sent.at(&bytes), 0);
      port->sent.clear();
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), memory.begin() + (write ? 0 : 10'000)));
    }
  }
  static_cast<void>(world.regions().table().remove(region));
}

TEST_F(PairedFlowsTest, TwoHundredConnectionsBetweenTheSamePortsKeepTheirDataApart) {
  constexpr std::size_t kMany = 200;
  std::vector<std::pair<ConnectionEnd*, ConnectionEnd*>> all;
  std::vector<Bytes> bytes;
  for (std::size_t i = 0; i < kMany; ++i) {
    all.push_back(connect());
    bytes.push_back(pattern(50, i));
  }
  for (std::size_t i = 0; i < kMany; ++i) {
    requester.send(*all[i].first, i, bytes[i]);
    acceptor.send(*all[i].second, i, bytes[i]);
  }
  EXPECT_TRUE(until(
      [&] { return acceptor.messages.size() == kMany && requester.messages.size() == kMany; }));
  for (std::size_t i = 0; i < kMany; ++i) {
    for (const auto& [port, end] :
         {std::pair(&requester, all[i].first), std::pair(&acceptor, all[i].second)}) {
      const auto got = port->from(end->source);
      ASSERT_EQ(got.size(), 1U);
      EXPECT_EQ(got[0].tag, i);
      EXPECT_EQ(got[0].bytes, bytes[i]);
    }
  }
  for (const auto& [a, b] : all) requester.leave(*a);
  EXPECT_TRUE(until([&] {
    return std::ranges::all_of(all, [](const auto& each) { return each.second->ends == 1; });
  }));
  for (const auto& [a, b] : all) acceptor.leave(*b);
  expect_nothing_left();
}

TEST_F(PairedFlowsTest, CopiedMessagesArriveBeforeTheEnd) {
  const auto [a, b] = connect();
  std::vector<Bytes> bytes;
  for (std::size_t i = 0; i < 20; ++i) bytes.push_back(pattern(1000, i));
  for (std::size_t i = 0; i < 20; ++i) {
    ASSERT_EQ(requester.send(*a, i, bytes[i]).state, link::Outcome::State::kDone);
  }
  requester.leave(*a);
  ASSERT_TRUE(until([&, end = b] { return end->ends != 0; }, seconds(1)));
  EXPECT_EQ(acceptor.from(b->source).size(), 20U);
  EXPECT_EQ(acceptor.closed, (std::vector<ConnectedPort::SourceEnd>{{b->source, false}}));
  EXPECT_TRUE(requester.closed.empty());
  EXPECT_EQ(a->ends, 0U);
  Bytes late = pattern(10, 1);
  EXPECT_EQ(acceptor.send(*b, 1, late).error, ECONNRESET);
  acceptor.leave(*b);
  expect_nothing_left();
}

// Neither may wait for an acknowledgement of the other.
TEST_F(PairedFlowsTest, BothEndsMayLeaveWithUndeliveredMessagesAtOnce) {
  const auto [a, b] = connect();
  Bytes bytes = pattern(1000, 1);
  for (std::size_t i = 0; i < 20; ++i) {
    requester.send(*a, i, bytes);
    acceptor.send(*b, i, bytes);
  }
  const auto before = world.network.now;
  requester.leave(*a);
  acceptor.leave(*b);
  EXPECT_TRUE(until([&] { return world.network.next() == os::Time::max(); }));
  EXPECT_LT(world.network.now - before, milliseconds(100));
  expect_nothing_left();
}

TEST_F(PairedFlowsTest, AnEndThatTakesNothingIsLeftAfterTwoSeconds) {
  const auto [a, b] = connect();
  acceptor.takes = false;
  Bytes bytes = pattern(1000, 1);
  requester.send(*a, 1, bytes);
  const auto before = world.network.now;
  requester.leave(*a);
  ASSERT_TRUE(until([&, end = b] { return end->ends != 0; }));
  EXPECT_GE(world.network.now - before, seconds(2));
  EXPECT_LT(world.network.now - before, milliseconds(2200));
}

TEST_F(PairedFlowsTest, PendingMessagesFailWhenThePeerLeaves) {
  const auto [a, b] = connect();
  acceptor.takes = false;
  Bytes bytes = pattern(3000, 1);
  ASSERT_EQ(requester.send(*a, 1, bytes, false, true).state, link::Outcome::State::kPending);
  world.wake();
  world.go_on_for(milliseconds(10));
  acceptor.leave(*b);
  ASSERT_TRUE(until([&, end = a] { return end->ends != 0 && requester.sent.contains(&bytes); }));
  EXPECT_EQ(requester.sent.at(&bytes), ECONNRESET);
  EXPECT_EQ(requester.closed, (std::vector<ConnectedPort::SourceEnd>{{a->source, false}}));
}

TEST_F(PairedFlowsTest, APortWithoutAListenerRefusesAtOnce) {
  for (const auto& at : {acceptor.host.address, os::address_of("10.0.0.1", 50'000)}) {
    const auto before = world.network.now;
    ConnectionEnd& a = requester.request(at);
    ASSERT_TRUE(until([&] { return a.failures != 0; }));
    EXPECT_EQ(a.error, ECONNREFUSED);
    EXPECT_LT(world.network.now - before, milliseconds(10));
  }
  expect_nothing_left();
}

TEST_F(PairedFlowsTest, ASilentHostTimesOut) {
  world.reports = false;
  const auto before = world.network.now;
  ConnectionEnd& a = requester.request(os::address_of("10.0.0.9", 50'000));
  ASSERT_TRUE(until([&] { return a.failures != 0; }, seconds(100)));
  EXPECT_EQ(a.error, ETIMEDOUT);
  EXPECT_GE(world.network.now - before, Options::defaults().request_timeout);
  expect_nothing_left();
}

TEST_F(PairedFlowsTest, ARequesterThatWithdrawsIsReportedOnce) {
  ConnectionEnd& a = requester.request(listener.host.address);
  ASSERT_TRUE(until([&] { return !listener.requests.empty(); }));
  const auto number = listener.requests.begin()->first;
  requester.leave(a);
  ASSERT_TRUE(until([&] { return !listener.withdrawn_requests.empty(); }));
  EXPECT_EQ(listener.withdrawn_requests, std::vector{number});
  EXPECT_EQ(a.failures, 0U);
  expect_nothing_left();
  EXPECT_EQ(listener.withdrawn_requests.size(), 1U);
}

TEST_F(PairedFlowsTest, AnAcceptorHearsThatItsRequesterIsGone) {
  ConnectionEnd& a = requester.request(listener.host.address);
  ASSERT_TRUE(until([&] { return !listener.requests.empty(); }));
  requester.leave(a);
  ConnectionEnd* const b = acceptor.accept(listener, listener.requests.begin()->first);
  ASSERT_NE(b, nullptr);
  ASSERT_TRUE(until([&] { return b->failures != 0; }, seconds(20)));
  EXPECT_EQ(b->error, ECONNABORTED);
  EXPECT_EQ(b->connects, 0U);
  expect_nothing_left();
}

TEST_F(PairedFlowsTest, AnAcceptorWhoseRequesterIsSilentFailsInTime) {
  world.reports = false;
  requester.request(listener.host.address);
  ASSERT_TRUE(until([&] { return !listener.requests.empty(); }));
  world.kill(requester);
  ConnectionEnd* const b = acceptor.accept(listener, listener.requests.begin()->first);
  ASSERT_NE(b, nullptr);
  ASSERT_TRUE(until([&] { return b->failures != 0; }, seconds(10)));
  EXPECT_EQ(b->error, ECONNABORTED);
  EXPECT_TRUE(acceptor.opened.empty());
}

TEST_F(PairedFlowsTest, TheOldestUndecidedRequestGoesWhenThereAreMoreThanTheBacklog) {
  listener.connections->set_backlog(2);
  std::vector<ConnectionEnd*> asked;
  for (int i = 0; i < 3; ++i) {
    asked.push_back(&requester.request(listener.host.address));
    world.wake();
    world.go_on_for(milliseconds(1));
  }
  EXPECT_TRUE(until([&] { return !listener.withdrawn_requests.empty(); }));
  EXPECT_LE(listener.requests.size(), 2U);
  for (ConnectionEnd* each : asked) requester.leave(*each);
}

TEST_F(PairedFlowsTest, AKilledPeerEndsAllItsConnections) {
  std::vector<ConnectionEnd*> ends;
  for (int i = 0; i < 3; ++i) ends.push_back(connect().first);
  world.kill(acceptor);
  const auto before = world.network.now;
  Bytes bytes = pattern(100, 1);
  requester.send(*ends[1], 1, bytes);
  const auto over = [&] {
    return std::ranges::all_of(ends, [](const auto* each) { return each->ends == 1; });
  };
  ASSERT_TRUE(until(over));
  EXPECT_LT(world.network.now - before, seconds(2));
  EXPECT_EQ(requester.closed.size(), 3U);
  for (const auto& each : requester.closed) EXPECT_TRUE(each.died);
}

TEST_F(PairedFlowsTest, ASilentPeerIsLostAfterItsTimeoutOnly) {
  world.reports = false;
  const auto [a, b] = connect();
  const auto before = world.network.now;
  world.kill(acceptor);
  ASSERT_TRUE(until([&, end = a] { return end->ends != 0; }, seconds(100)));
  EXPECT_GE(world.network.now - before, seconds(29));
  EXPECT_LT(world.network.now - before, seconds(40));
}

TEST_F(PairedFlowsTest, AnIdleConnectionLives) {
  const auto [a, b] = connect();
  world.go_on_for(std::chrono::minutes(5));
  EXPECT_TRUE(a->is_open());
  EXPECT_TRUE(b->is_open());
}

// Only the first packet of data tells the acceptor that the requester has its REP.
bool is_rtu(const roce::Path&, const Bytes& bytes) {
  wire::Packet packet;
  if (wire::parse(bytes, packet) != wire::Malformed::kNone) return false;
  if (packet.destination != wire::kCmQpn) return false;
  const auto mad = wire::parse_cm(packet.payload.first(wire::kMadBytes));
  return mad && std::holds_alternative<wire::CmRtu>(mad->message);
}

TEST_F(PairedFlowsTest, DataStandForALostRtu) {
  world.network.loses = is_rtu;
  ConnectionEnd& a = requester.request(listener.host.address);
  ASSERT_TRUE(until([&] { return !listener.requests.empty(); }));
  ConnectionEnd& b = *acceptor.accept(listener, listener.requests.begin()->first);
  ASSERT_TRUE(until([&] { return a.is_open(); }));
  EXPECT_EQ(b.connects, 0U);
  Bytes bytes = pattern(10, 1);
  requester.send(a, 1, bytes);
  ASSERT_TRUE(until([&] { return !acceptor.messages.empty(); }, milliseconds(100)));
  EXPECT_EQ(b.connects, 1U);
  EXPECT_EQ(acceptor.messages[0].source, b.source);
  acceptor.send(b, 2, bytes);
  EXPECT_TRUE(until([&] { return !requester.messages.empty(); }, milliseconds(100)));
}

TEST_F(PairedFlowsTest, AnEndStandsForALostRtu) {
  world.network.loses = is_rtu;
  ConnectionEnd& a = requester.request(listener.host.address);
  ASSERT_TRUE(until([&] { return !listener.requests.empty(); }));
  ConnectionEnd& b = *acceptor.accept(listener, listener.requests.begin()->first);
  ASSERT_TRUE(until([&] { return a.is_open(); }));
  EXPECT_EQ(b.connects, 0U);
  requester.leave(a);
  ASSERT_TRUE(until([&] { return b.ends != 0; }, milliseconds(100)));
  EXPECT_EQ(b.connects, 1U);
  EXPECT_EQ(b.ends, 1U);
  EXPECT_EQ(b.failures, 0U);
}

TEST_F(PairedFlowsTest, PacketsBecomeSmallerInBothDirectionsAndGrowAgain) {
  constexpr std::size_t kNarrow = kHole + 28;  // with IP and UDP headers
  const auto [a, b] = connect();
  const auto exchange = [&, a = a, b = b] {
    Bytes bytes = pattern(4000, 1);
    requester.messages.clear();
    acceptor.messages.clear();
    requester.send(*a, 1, bytes, true);
    acceptor.send(*b, 1, bytes, true);
    EXPECT_TRUE(until([&] { return !requester.messages.empty() && !acceptor.messages.empty(); }));
  };
  const auto packets_of_exchange = [&] {
    const auto before = world.network.packets();
    exchange();
    return world.network.packets() - before;
  };
  const auto few = packets_of_exchange();
  world.network.loses = is_large;
  requester.host.narrow(kNarrow, {acceptor.host.address});
  acceptor.host.narrow(kNarrow, {requester.host.address});
  world.wake();
  world.go_on_for(milliseconds(10));
  EXPECT_GT(packets_of_exchange(), few);
  world.network.loses = nullptr;
  requester.host.narrow(1500, {});
  acceptor.host.narrow(1500, {});
  for (int i = 0; i < 8; ++i) {
    exchange();
    world.go_on_for(milliseconds(200));
  }
  EXPECT_EQ(packets_of_exchange(), few);
  requester.leave(*a);
  ASSERT_TRUE(until([&, end = b] { return end->ends == 1; }));
  acceptor.leave(*b);
  expect_nothing_left();
}

// Nothing is reported: packets of 1500 bytes vanish, in one direction after the other.
TEST_F(PairedFlowsTest, ABlackHoleIsFoundInBothDirections) {
  const auto [a, b] = connect();
  world.network.loses = is_large;
  Bytes bytes = pattern(4000, 1);
  requester.send(*a, 1, bytes);
  EXPECT_TRUE(until([&] { return !acceptor.messages.empty(); }, seconds(20)));
  acceptor.send(*b, 1, bytes);
  EXPECT_TRUE(until([&] { return !requester.messages.empty(); }, seconds(20)));
}

TEST_F(PairedFlowsTest, BothEndsMayAskEachOtherAtTheSameTime) {
  ConnectedPort& other = world.add(options(), 1, 40'003);
  ASSERT_TRUE(requester.connections->listen(16, requester));
  ConnectionEnd& a = requester.request(listener.host.address);
  ConnectionEnd& b = listener.request(requester.host.address);
  ASSERT_TRUE(until([&] { return !listener.requests.empty() && !requester.requests.empty(); }));
  ConnectionEnd* const c = acceptor.accept(listener, listener.requests.begin()->first);
  ConnectionEnd* const d = other.accept(requester, requester.requests.begin()->first);
  ASSERT_TRUE(c != nullptr && d != nullptr);
  EXPECT_TRUE(until([&] { return a.is_open() && b.is_open() && c->is_open() && d->is_open(); }));
}

TEST_F(PairedFlowsTest, AListenersPortTakesNoFlowsOfReliableDatagrams) {
  auto flow = requester.engine->connect(listener.host.address);
  ASSERT_TRUE(flow);
  Bytes bytes = pattern(10, 1);
  const LocalRange sge{bytes.data(), bytes.size()};
  link::SendRequest request;
  request.must_copy = true;
  request.sges = {&sge, 1};
  request.length = bytes.size();
  static_cast<void>(flow.value()->send(request));
  const auto state = [&] { return flow.value()->check_peer(requester); };
  EXPECT_TRUE(until([&] { return state() == link::PeerState::kRefuses; }));
  EXPECT_TRUE(listener.opened.empty());
}

// A REQ that names another address than the one that it comes from.
TEST_F(PairedFlowsTest, ARequestThatNamesAThirdAddressIsRefused) {
  RdmOptions lying = options();
  ConnectedPort& other = world.add(lying, 2, 40'003);
  Network& network = world.network;
  bool lied = false;
  network.loses = [&](const roce::Path& path, const Bytes& bytes) {
    if (lied || !(path.from == requester.host.address)) return false;
    // The same packet from another source.
    Bytes forged(bytes.begin(), bytes.end() - wire::kIcrcBytes);
    const roce::Path from_there{other.host.address, path.to,
                                roce::route_between(other.host.address, path.to)};
    const std::uint32_t crc = wire::icrc(from_there.route, forged);
    forged.resize(bytes.size());
    wire::store_icrc(forged.data() + bytes.size() - wire::kIcrcBytes, crc);
    lied = true;
    network.send(from_there, forged);
    return true;
  };
  ConnectionEnd& a = requester.request(listener.host.address);
  world.wake();
  world.go_on_for(milliseconds(1));
  EXPECT_TRUE(listener.requests.empty());
  ASSERT_TRUE(until([&] { return !listener.requests.empty(); })) << "the repetition is its own";
  EXPECT_EQ(listener.requests.begin()->second.peer, requester.host.address);
  requester.leave(a);
}

}  // namespace
}  // namespace weft::rdm::testing
