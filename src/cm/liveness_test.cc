// SPDX-License-Identifier: BSD-2-Clause
// Which peers are found dead, and which forged messages change nothing?
#include <gtest/gtest.h>

#include <set>

#include "test_support.h"

namespace weft::cm {
namespace {

using namespace testing;

// Another instance at the address of b.
struct Successor {
  explicit Successor(Pair& its_pair) : pair(its_pair), station(2, another()) {}
  static AgentOptions another() {
    AgentOptions options = options_of(2);
    options.guid = 0x2002;
    return options;
  }
  // Both carry messages until there is none, or lose those to the successor.
  void carry(bool answers = true) {
    while (!pair.a.host.sent.empty() || !station.host.sent.empty()) {
      for (const Sent& each : std::exchange(pair.a.host.sent, {})) {
        if (answers) station.agent.take(pair.a.here, each.bytes, pair.now);
      }
      for (const Sent& each : std::exchange(station.host.sent, {})) {
        pair.a.agent.take(pair.b.here, each.bytes, pair.now);
      }
      pair.a.agent.deliver();
      station.agent.deliver();
    }
  }
  // Asks a for a connection, and repeats that until it is reported there. Returns how long it took.
  std::chrono::nanoseconds get_through(bool answers) {
    const ListenerId listener =
        pair.a.agent.listen(kService, 16, pair.a.program, &listener_context).value();
    ConnectRequest request = pair.request();
    request.to = pair.a.here;
    const Time begin = pair.now;
    const ConnectionId id =
        station.agent.connect(request, station.program, nullptr, pair.now).value();
    while (pair.now < begin + seconds(10)) {
      carry(answers);
      for (const Heard& each : pair.a.program.events) {
        if (each.event.listener == listener) return pair.now - begin;
      }
      pair.now = std::min(pair.a.agent.due(), station.agent.due());
      pair.a.agent.advance(pair.now);
      station.agent.advance(pair.now);
    }
    station.agent.disconnect(id, {}, pair.now);
    return pair.now - begin;
  }

  Pair& pair;
  Station station;
  int listener_context = 0;
};

TEST(Liveness, AnswersAProbe) {
  Pair pair;
  pair.establish(true);
  pair.now += seconds(1);
  pair.b.agent.probe(pair.at_b, pair.now);
  ASSERT_EQ(pair.b.host.sent.size(), 1);
  const Sent lap = pair.b.host.sent[0];
  EXPECT_EQ(lap.as<wire::CmLap>().remote_id, pair.at_a);
  pair.carry(pair.b, pair.a);
  const auto& apr = pair.a.host.sent.at(0);
  EXPECT_EQ(apr.mad.transaction, lap.mad.transaction);
  EXPECT_EQ(apr.as<wire::CmApr>().status, 2);
  EXPECT_EQ(apr.as<wire::CmApr>().remote_id, pair.at_b);
  pair.carry();
  EXPECT_EQ(pair.b.agent.last_received(pair.at_b), pair.now);
  EXPECT_EQ(pair.a.agent.last_received(pair.at_a), pair.now) << "the LAP is a sign of life, too";
  pair.pass(seconds(1));
  EXPECT_EQ(pair.b.program.look(), "");
}

TEST(Liveness, TellsNoOtherAddressThatAConnectionIsUnknown) {
  Pair pair;
  pair.establish(true);
  wire::CmLap lap;
  lap.local_id = pair.at_a;
  lap.remote_id = pair.at_b;
  pair.b.take(remote(9), {0, 5, 0, lap}, pair.now);
  EXPECT_EQ(pair.b.host.look(), "");
}

TEST(Liveness, OfARequesterWhoseRtuWasLostEstablishesTheConnection) {
  Pair pair;
  pair.ask(true);
  pair.carry();
  pair.accept(true);
  pair.carry();
  ASSERT_TRUE(pair.a.agent.confirm(pair.at_a, {}, pair.now));
  pair.lose();
  pair.pass(milliseconds(1999), true);
  EXPECT_EQ(pair.b.program.look(), "request");
  pair.pass(milliseconds(2));
  EXPECT_EQ(pair.b.program.look(), "established");
}

TEST(Liveness, AsksPeersOfItsHostMoreOften) {
  for (const bool is_near : {false, true}) {
    Pair pair;
    pair.a.host.has_near_peers = is_near;
    pair.establish(true);
    const AgentOptions options;
    const WatchTimes times = is_near ? options.near_watch : options.watch;
    const std::size_t before = pair.a.host.count;
    pair.pass(times.probe_after - milliseconds(1), true);
    EXPECT_EQ(pair.a.host.count - before, 0);
    pair.pass(times.probe_after / 8 + milliseconds(2), true);
    EXPECT_EQ(pair.a.host.count - before, 1);
    pair.a.agent.unreachable(pair.b.here, pair.now);
    pair.pass(times.suspect_timeout - milliseconds(1), true);
    EXPECT_EQ(pair.a.program.look(), "");
    pair.pass(milliseconds(2), true);
    EXPECT_EQ(pair.a.program.look(), "lost");
  }
}

TEST(Liveness, WaitsForASlowPeerThatAUserAsksAbout) {
  Pair pair;
  pair.establish(true);
  pair.a.agent.probe(pair.at_a, pair.now);
  pair.pass(milliseconds(59'900), true);
  EXPECT_EQ(pair.a.program.look(), "");
  pair.pass(milliseconds(200), true);
  EXPECT_EQ(pair.a.program.look(), "lost");
}

// The answers may be waiting behind the call of a process that did not run for a while.
TEST(Liveness, CountsNoTimeInWhichItDidNotRun) {
  Pair pair;
  pair.establish(true);
  pair.a.agent.unreachable(pair.b.here, pair.now);
  pair.lose();
  pair.now += seconds(200);
  pair.a.agent.advance(pair.now);
  pair.a.agent.deliver();
  EXPECT_EQ(pair.a.program.look(), "");
  pair.pass(seconds(2), true);
  EXPECT_EQ(pair.a.program.look(), "lost");
}

TEST(Liveness, SuspectsAPeerThatKnowsNoQueuePairOnAllItsConnections) {
  Pair pair;
  pair.establish(true);
  wire::CmRej rej;
  rej.reason = wire::CmReason::kStale;
  pair.a.take(pair.b.here, {0, 7, 0, rej}, pair.now);
  EXPECT_EQ(pair.a.host.look(), "LAP");
}

TEST(Liveness, AnswersAProbeOfAnUnknownConnectionByAnInvalidId) {
  Station station(2);
  wire::CmLap lap;
  lap.local_id = 3;
  lap.remote_id = 4;
  station.take(remote(9), {0, 5, 0, lap}, Time(seconds(1000)));
  const auto& apr = station.host.sent.at(0).as<wire::CmApr>();
  EXPECT_EQ(apr.status, 1);
  EXPECT_EQ(apr.local_id, 4);
  EXPECT_EQ(apr.remote_id, 3);
  for (int i = 0; i < 1000; ++i) station.take(remote(9), {0, 5, 0, lap}, Time(seconds(1000)));
  EXPECT_EQ(station.host.count, 50);
}

TEST(Liveness, ProbesAnIdlePeerEachTwoSeconds) {
  Pair pair;
  pair.establish(true);
  const std::size_t before = pair.a.host.count;
  pair.pass(seconds(100));
  EXPECT_EQ(pair.a.program.look() + pair.b.program.look(), "");
  EXPECT_NEAR(static_cast<double>(pair.a.host.count - before), 50, 3)
      << "an exchange proves both ends to each other";
}

TEST(Liveness, ProbesNoConnectionThatIsNotWatched) {
  Pair pair;
  pair.establish(false);
  const std::size_t before = pair.a.host.count;
  pair.pass(seconds(100));
  EXPECT_EQ(pair.a.host.count, before);
  EXPECT_EQ(pair.a.agent.due(), Time::max());
}

TEST(Liveness, ProbesNoConnectionThatReceivesData) {
  Pair pair;
  pair.establish(true);
  const std::size_t before = pair.a.host.count + pair.b.host.count;
  for (int i = 0; i < 100; ++i) {
    pair.a.program.last_data = pair.b.program.last_data = pair.now;
    pair.pass(seconds(1));
  }
  EXPECT_EQ(pair.a.host.count + pair.b.host.count, before);
}

// The cost of watching is that of a peer, not of its connections, of which each has its turn.
TEST(Liveness, ProbesTheConnectionsOfAPeerInTurn) {
  Pair pair;
  for (int i = 0; i < 50; ++i, ++pair.qpn) pair.establish(true);
  std::set<ConnectionId> probed;
  const std::size_t before = pair.a.host.count;
  for (int i = 0; i < 60; ++i) {
    pair.now = pair.a.agent.due();
    pair.a.agent.advance(pair.now);
    for (const Sent& each : pair.a.host.sent) probed.insert(each.as<wire::CmLap>().remote_id);
    pair.carry();
  }
  EXPECT_EQ(probed.size(), 50);
  EXPECT_EQ(pair.a.host.count - before, 60);
}

TEST(Liveness, LosesASilentPeerAfterItsTimeout) {
  Pair pair;
  pair.establish(true);
  const std::size_t before = pair.a.host.count;
  pair.pass(milliseconds(59'900), true);
  EXPECT_EQ(pair.a.program.look(), "");
  pair.pass(milliseconds(200), true);
  EXPECT_EQ(pair.a.program.look(), "lost");
  EXPECT_LT(pair.a.host.count - before, 32);
  pair.pass(seconds(10), true);
  EXPECT_EQ(pair.a.agent.entries(), 0);
  EXPECT_EQ(pair.a.agent.due(), Time::max());
}

TEST(Liveness, LosesAnUnreachablePeerThatAnswersNoProbe) {
  Pair pair;
  for (int i = 0; i < 3; ++i, ++pair.qpn) pair.establish(true);
  pair.a.agent.unreachable(pair.b.here, pair.now);
  pair.pass(milliseconds(900), true);
  EXPECT_EQ(pair.a.program.look(), "");
  pair.pass(milliseconds(100), true);
  EXPECT_EQ(pair.a.program.look(), "lost lost lost");
}

TEST(Liveness, KeepsASuspectedPeerThatAnswersAfterLosses) {
  Pair pair;
  pair.establish(true);
  pair.a.agent.unreachable(pair.b.here, pair.now);
  pair.pass(milliseconds(500), true);
  pair.pass(seconds(5));
  EXPECT_EQ(pair.a.program.look(), "");
}

TEST(Liveness, KeepsASuspectedPeerWhoseDataArrive) {
  Pair pair;
  pair.establish(true);
  pair.a.agent.unreachable(pair.b.here, pair.now);
  pair.a.program.last_data = pair.now + milliseconds(500);
  pair.pass(milliseconds(1500), true);
  EXPECT_EQ(pair.a.program.look(), "");
}

TEST(Liveness, LosesOnlyTheConnectionThatTheSameInstanceDoesNotKnow) {
  Pair pair;
  pair.establish(true);
  const ConnectionId first = pair.at_a;
  pair.qpn += 1;
  pair.establish(true);
  pair.b.agent.disconnect(pair.at_b, {}, pair.now);
  pair.pass(seconds(4), true);  // the DREQs were lost
  for (int i = 0; i < 3; ++i) pair.pass(seconds(2));
  ASSERT_EQ(pair.a.program.events.size(), 1);
  EXPECT_EQ(pair.a.program.events[0].event.id, pair.at_a);
  EXPECT_EQ(pair.a.program.look(), "lost");
  EXPECT_NE(first, pair.at_a);
  EXPECT_EQ(pair.a.agent.connections(), 1);
}

// A connection to another peer gets the id of one that has ended while a probe asks about it.
TEST(Liveness, LosesNoConnectionThatHasTheIdOfAnEndedOne) {
  for (const bool is_answered_late : {false, true}) {
    Pair pair;
    pair.establish(true);
    const ConnectionId id = pair.at_a;
    pair.qpn += 1;
    pair.establish(true);
    pair.a.agent.probe(id, pair.now);
    const wire::CmMad lap = pair.a.host.sent.at(0).mad;
    pair.lose();
    pair.a.agent.disconnect(id, {}, pair.now);
    pair.carry();
    pair.pass(milliseconds(101), true);
    ConnectRequest request = pair.request(true);
    request.to = remote(9);
    const auto connect = [&] {
      return pair.a.agent.connect(request, pair.a.program, nullptr, pair.now).value();
    };
    for (ConnectionId next = connect(); next != id; next = connect()) {
      pair.a.agent.abandon(next, pair.now);
      pair.lose();
    }
    const std::uint64_t transaction = pair.a.host.sent.at(0).mad.transaction;
    wire::CmRep rep;
    rep.local_id = 77;
    rep.remote_id = id;
    pair.a.take(remote(9), {0, transaction, 0, rep}, pair.now);
    ASSERT_TRUE(pair.a.agent.confirm(id, {}, pair.now));
    pair.a.program.look();
    if (is_answered_late) pair.b.take(pair.a.here, lap, pair.now);
    pair.pass(milliseconds(500));
    EXPECT_EQ(pair.a.program.look(), "");
  }
}

TEST(Liveness, EndsAllConnectionsOfAnInstanceThatWasReplaced) {
  Pair pair;
  for (int i = 0; i < 100; ++i, ++pair.qpn) pair.establish(true);
  Successor successor(pair);
  pair.now += seconds(3);
  pair.a.agent.advance(pair.now);
  EXPECT_EQ(pair.a.host.sent.size(), 1);
  successor.carry();
  EXPECT_EQ(pair.a.program.events.size(), 100);
  EXPECT_EQ(pair.a.agent.connections(), 0);
}

TEST(Liveness, LetsARestartedPeerThroughAtOnce) {
  Pair pair;
  pair.establish(true);
  Successor successor(pair);
  EXPECT_LT(successor.get_through(true), milliseconds(10));
  EXPECT_EQ(pair.a.program.look(), "lost request");
}

TEST(Liveness, AsksAboutTheFormerInstanceWhenAnotherOneReplies) {
  Pair pair;
  pair.establish(true);
  Successor successor(pair);
  ASSERT_TRUE(successor.station.agent.listen(kService, 1, successor.station.program, nullptr));
  pair.ask(true);
  successor.carry();
  const ConnectionId id = successor.station.program.events.at(0).event.id;
  ASSERT_TRUE(successor.station.agent.accept(id, {}, successor.station.program, nullptr, pair.now));
  successor.carry();
  EXPECT_EQ(pair.a.program.look(), "reply lost");
}

// An instance that answers no probe, as a foreign one.
TEST(Liveness, LetsASilentSuccessorThroughAfterTheSuspicion) {
  Pair pair;
  pair.establish(true);
  Successor successor(pair);
  EXPECT_LT(successor.get_through(false), milliseconds(1501));
  EXPECT_EQ(pair.a.program.look(), "lost request");
}

// Requests of another instance, rejections, DREQs and ICMP errors from the peer's address, in any
// number: the connection stays, and few probes are sent.
TEST(Liveness, KeepsAPeerThatForgedMessagesDeclareGone) {
  Pair pair;
  pair.establish(true);
  ASSERT_TRUE(pair.a.agent.listen(kService, 16, pair.a.program, nullptr));
  const std::size_t before = pair.a.host.count;
  for (std::uint32_t i = 1; i <= 10'000; ++i) {
    wire::CmReq req;
    req.local_id = i;
    req.service = kService;
    req.ca_guid = std::uint64_t{i} << 20;
    wire::CmRej rej;
    rej.local_id = pair.at_b;
    rej.remote_id = pair.at_a;
    rej.reason = wire::CmReason::kStale;
    wire::CmDreq dreq;
    dreq.local_id = pair.at_b;
    dreq.remote_id = pair.at_a;
    dreq.remote_qpn = 0x9C4002;
    for (const wire::CmMessage& message :
         {wire::CmMessage(req), wire::CmMessage(rej), wire::CmMessage(dreq)}) {
      pair.a.take(pair.b.here, {0, i, 0, message}, pair.now);
    }
    pair.a.agent.unreachable(pair.b.here, pair.now);
    pair.carry();
    pair.pass(milliseconds(1));
  }
  EXPECT_EQ(pair.a.program.look() + pair.b.program.look(), "");
  EXPECT_LE(pair.a.host.count - before, 57) << "a probe in 200 ms, and answers to probes";
  EXPECT_EQ(pair.a.agent.connections(), 1);
}

TEST(Liveness, TakesNoForgedAnswer) {
  Pair pair;
  pair.establish(true);
  wire::CmApr apr;
  apr.local_id = pair.at_b;
  apr.remote_id = pair.at_a;
  apr.status = 1;
  pair.a.take(pair.b.here, {0, 0, 0, apr}, pair.now);
  pair.a.agent.probe(pair.at_a, pair.now);
  const std::uint64_t transaction = pair.a.host.sent.at(0).mad.transaction;
  pair.a.take(pair.b.here, {0, transaction + 1, 0, apr}, pair.now);
  pair.a.take(remote(9), {0, transaction, 0, apr}, pair.now);
  EXPECT_EQ(pair.a.program.look(), "");
  pair.a.take(pair.b.here, {0, transaction, 0, apr}, pair.now);
  EXPECT_EQ(pair.a.program.look(), "lost");
}

TEST(Liveness, WatchesNoConnectionAfterItsEnd) {
  Pair pair;
  pair.establish(true);
  pair.a.agent.disconnect(pair.at_a, {}, pair.now);
  pair.carry();
  pair.pass(seconds(3));
  EXPECT_TRUE(pair.is_empty());
  EXPECT_EQ(pair.a.agent.due(), Time::max());
  EXPECT_EQ(pair.b.agent.due(), Time::max());
}

// A REQ of the same instance with numbers of a connection that lives.
struct Stale : ::testing::Test {
  // The names of the answers to a REQ with these numbers.
  std::string ask(std::uint32_t id, std::uint32_t qpn, std::uint32_t eecn = 0) {
    pair.b.host.look();
    wire::CmReq req;
    req.local_id = id;
    req.service = kService;
    req.ca_guid = 0x1001;
    req.qpn = qpn;
    req.eecn = eecn;
    req.transport = eecn != 0 ? 2 : 0;
    pair.b.take(pair.a.here, {0, 99, 0, req}, pair.now);
    return pair.b.host.look();
  }

  Pair pair;
};

TEST_F(Stale, RequestOfAnUnwatchedConnectionIsRejected) {
  pair.establish(false);
  EXPECT_EQ(ask(7, 0x9C4002), "REJ(10)");
  EXPECT_EQ(ask(pair.at_a, 8), "REJ(30)");
  EXPECT_EQ(ask(7, 8), "");
  EXPECT_EQ(pair.b.program.look(), "request");
}

TEST_F(Stale, RequestOfAWatchedConnectionStartsAProbe) {
  pair.establish(true);
  EXPECT_EQ(ask(7, 0x9C4002), "LAP");
  EXPECT_EQ(ask(pair.at_a, 8), "") << "one at a time";
  EXPECT_EQ(pair.b.program.look(), "");
}

TEST_F(Stale, RequestWhileItsTwinAwaitsTheRtuDrawsTheReplyOfThat) {
  pair.ask();
  pair.carry();
  EXPECT_EQ(ask(7, 0x9C4002), "") << "undecided";
  pair.accept();
  EXPECT_EQ(ask(7, 0x9C4002), "REP");
  EXPECT_EQ(pair.b.program.look(), "request");
}

TEST_F(Stale, RequestOfReliableDatagramsIsToldApartByItsContext) {
  EXPECT_EQ(ask(7, 5, 1), "");
  EXPECT_EQ(ask(8, 5, 2), "");
  EXPECT_EQ(pair.b.program.look(), "request request");
}

// A requester that has lost its attempt, with all its messages, and asks again: the reply to the
// first REQ draws a REJ, and the second gets through.
TEST_F(Stale, RequestGetsThroughWhenThePeerHasLostTheFirst) {
  pair.ask();
  pair.carry();
  pair.accept();
  pair.lose();
  pair.a.agent.disconnect(pair.at_a, {}, pair.now);
  pair.lose();
  pair.ask();
  pair.pass(milliseconds(10));
  EXPECT_EQ(pair.b.program.look(), "request withdrawn request");
}

}  // namespace
}  // namespace weft::cm
