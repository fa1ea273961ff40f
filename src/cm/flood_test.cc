// SPDX-License-Identifier: BSD-2-Clause
// What do forged requests cost, and do they shut out others?
#include <gtest/gtest.h>

#include <deque>

#include "test_support.h"

namespace weft::cm {
namespace {

using namespace testing;

wire::CmMad forged(std::uint32_t number, std::uint64_t service = kService) {
  wire::CmReq req;
  req.local_id = number + 1;
  req.service = service;
  req.ca_guid = number;
  req.qpn = number + 1;
  return {0, number, 0, req};
}

// Accepts each request at once.
struct Acceptor final : User {
  explicit Acceptor(Station& station) : agent(station.agent) {}
  void handle(const CmEvent& event) override {
    ++events[static_cast<std::size_t>(event.kind)];
    if (event.kind != EventKind::kRequest) return;
    AcceptRequest reply;
    reply.rep.qpn = 5;
    EXPECT_TRUE(agent.accept(event.id, reply, *this, nullptr, now));
  }
  Time last_received(ConnectionId, void*) override { return {}; }
  std::size_t count(EventKind kind) const { return events[static_cast<std::size_t>(kind)]; }

  Agent& agent;
  Time now{seconds(1000)};
  std::size_t events[12] = {};
};

TEST(Flood, OfOneRequestDrawsFourPacketsInAll) {
  Station station(2);
  Acceptor acceptor(station);
  ASSERT_TRUE(station.agent.listen(kService, 128, acceptor, nullptr));
  station.take(remote(9), forged(1), acceptor.now);
  while (station.agent.due() != Time::max()) station.agent.advance(station.agent.due());
  station.agent.deliver();
  EXPECT_EQ(station.host.look(), "REP REP REP REP");
  EXPECT_EQ(acceptor.count(EventKind::kTimedOut), 1);
  EXPECT_EQ(station.agent.entries(), 0);
}

TEST(Flood, EndsTheOldestRequestFirst) {
  Station station(2);
  const Time now{seconds(1000)};
  const ListenerId id = station.agent.listen(kService, 2, station.program, nullptr).value();
  for (std::uint32_t i = 0; i < 3; ++i) station.take(spoofed(i), forged(i), now);
  EXPECT_EQ(station.program.events.at(3).event.remote, spoofed(0));
  EXPECT_EQ(station.program.look(), "request request request overrun");
  EXPECT_EQ(station.agent.connections(), 2);
  EXPECT_EQ(station.stats.of(Stat::kRequestsDisplaced), 1);
  station.agent.set_backlog(id, 1);
  station.agent.deliver();
  EXPECT_EQ(station.program.look(), "overrun");
  EXPECT_EQ(station.host.count, 0);
}

TEST(Flood, LeavesOneRequestToABacklogOf0) {
  Station station(2);
  const Time now{seconds(1000)};
  const ListenerId id = station.agent.listen(kService, 0, station.program, nullptr).value();
  EXPECT_NE(id, 0U) << "which means none";
  for (std::uint32_t i = 0; i < 2; ++i) station.take(spoofed(i), forged(i), now);
  EXPECT_EQ(station.program.look(), "request request overrun");
  station.agent.set_backlog(id, 0);
  for (const ListenerId none : {ListenerId{0}, id + 1}) {
    station.agent.set_backlog(none, 0);
    station.agent.stop(none, now);
  }
  station.agent.deliver();
  EXPECT_EQ(station.program.look(), "");
  EXPECT_EQ(station.agent.connections(), 1);
}

TEST(Flood, ReportsNothingOfRequestsThatWereDisplacedUnseen) {
  Station station(2);
  const Time now{seconds(1000)};
  ASSERT_TRUE(station.agent.listen(kService, 2, station.program, nullptr));
  for (std::uint32_t i = 0; i < 5; ++i) {
    station.agent.take(spoofed(i), wire::write_cm(forged(i)), now);
  }
  station.agent.deliver();
  EXPECT_EQ(station.program.events.at(0).event.remote, spoofed(3));
  EXPECT_EQ(station.program.look(), "request request");
}

// A host that no flood of requests holds back.
AgentOptions without_limit() {
  AgentOptions options = options_of(2);
  options.requests = {1'000'000, 1'000'000};
  return options;
}

// An acceptor, a requester that is 50 ms away, and 100,000 forged requests a second.
struct Besieged : Pair {
  Besieged() : acceptor(b) {
    b.agent.stop(listener, now);
    EXPECT_TRUE(b.agent.listen(kService, 1024, acceptor, nullptr));
  }
  void flood(std::chrono::nanoseconds duration) {
    for (const Time end = now + duration; now < end; ++number) {
      acceptor.now = now += std::chrono::microseconds(10);
      b.take(spoofed(number), forged(number), now);
      most = std::max(most, b.agent.entries());
      drawn += std::erase_if(b.host.sent, [&](const Sent& each) { return !(each.to == a.here); });
      if (number % 100 != 0) continue;
      a.agent.advance(now);
      b.agent.advance(now);
      exchange(a, b, to_b);
      exchange(b, a, to_a);
    }
  }

  Acceptor acceptor;
  std::uint32_t number = 0;
  std::size_t most = 0;
  std::size_t drawn = 0;

 private:
  using OnItsWay = std::deque<std::pair<Time, Bytes>>;
  void exchange(Station& from, Station& to, OnItsWay& way) {
    for (Sent& each : std::exchange(from.host.sent, {})) {
      way.emplace_back(now + milliseconds(50), std::move(each.bytes));
    }
    for (; !way.empty() && way.front().first <= now; way.pop_front()) {
      to.agent.take(from.here, way.front().second, now);
      to.agent.deliver();
    }
  }
  OnItsWay to_a, to_b;
};

TEST(Flood, LetsANewPeerThrough) {
  Besieged siege;
  siege.flood(milliseconds(500));
  siege.ask();
  siege.flood(milliseconds(150));
  ASSERT_EQ(siege.a.program.look(), "reply");
  ASSERT_TRUE(siege.a.agent.confirm(siege.at_a, {}, siege.now));
  siege.flood(milliseconds(350));
  EXPECT_EQ(siege.acceptor.count(EventKind::kEstablished), 1);
  EXPECT_EQ(siege.number, 100'000);
  EXPECT_LE(siege.most, 513 + 250 + 2);
  EXPECT_LE(siege.drawn, 513 * 3 + 250) << "during the flood a REP is not repeated by timer";
  EXPECT_GE(siege.b.stats.of(Stat::kRequestsHeldBack), 99'000);
  siege.a.agent.disconnect(siege.at_a, {}, siege.now);
  siege.carry();
  siege.pass(seconds(20), true);
  EXPECT_TRUE(siege.is_empty());
}

// Repeated requests count as others do, and each draws at most one packet.
TEST(Flood, OfOneRepeatedRequestDrawsFewPackets) {
  Station station(2);
  Acceptor acceptor(station);
  ASSERT_TRUE(station.agent.listen(kService, 128, acceptor, nullptr));
  for (int i = 0; i < 10'000; ++i) station.take(remote(9), forged(1), acceptor.now);
  EXPECT_EQ(station.host.count, RequestRates{}.most);
}

// Each needs its REQ twice, since its REP comes late.
TEST(Flood, IsNotWhatManyPeersAreThatConnectAtOnce) {
  Station station(2);
  Acceptor acceptor(station);
  ASSERT_TRUE(station.agent.listen(kService, 4096, acceptor, nullptr));
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    station.take(spoofed(i), forged(i), acceptor.now);
    ASSERT_EQ(station.host.look(), "REP") << i;
    station.take(spoofed(i), forged(i), acceptor.now);
    ASSERT_EQ(station.host.sent.size(), 1) << i;
    const auto& rep = station.host.sent.front().as<wire::CmRep>();
    station.take(spoofed(i), {0, i, 0, wire::CmRtu{i + 1, rep.local_id, {}}}, acceptor.now);
    station.host.sent.clear();
  }
  EXPECT_EQ(acceptor.count(EventKind::kEstablished), 20'000);
  EXPECT_EQ(station.stats.of(Stat::kRequestsHeldBack), 0);
}

TEST(Flood, OfRejectedRequestsLeavesABoundedNumberOfEntries) {
  Station station(2, without_limit());
  const Time now{seconds(1000)};
  ASSERT_TRUE(station.agent.listen(kService, 16, station.program, nullptr));
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    station.take(spoofed(i), forged(i), now);
    const ConnectionId id = station.program.events.back().event.id;
    ASSERT_TRUE(station.agent.reject(id, wire::CmReason::kConsumer, {}, now));
  }
  EXPECT_LE(station.agent.entries(), 1024);
  EXPECT_EQ(station.host.count, 20'000);
}

// Answers without a state: 50 a second for a source, 1,000 in total.
TEST(Flood, DrawsFewRejections) {
  Station station(2, without_limit());
  Time now{seconds(1000)};
  for (std::uint32_t i = 0; i < 10'000; ++i) station.take(remote(9), forged(i), now);
  EXPECT_EQ(station.host.count, 50);
  EXPECT_EQ(station.stats.of(Stat::kAnswersLimited), 10'000 - 50);
  for (int i = 0; i < 10'000; ++i) station.take(remote(9), forged(1), now += milliseconds(1));
  EXPECT_EQ(station.host.count, 10 * 50 + 1) << "in ten seconds and the beginning of another";
}

TEST(Flood, FromManySourcesDrawsFewRejections) {
  Station station(2, without_limit());
  Time now{seconds(1000)};
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    station.take(spoofed(i), forged(i), now += std::chrono::microseconds(10));
  }
  EXPECT_EQ(station.host.count, 1000);
  EXPECT_EQ(station.agent.entries(), 0);
}

// REJs that answer a REQ at once, or a repeated one, are among these answers.
TEST(Flood, OfRefusedRequestsDrawsFewRejections) {
  Station station(2, without_limit());
  const Time now{seconds(1000)};
  ASSERT_TRUE(station.agent.listen(kService, 16, station.program, nullptr));
  for (std::uint32_t i = 0; i < 1000; ++i) {
    station.take(remote(9), forged(i), now);
    const ConnectionId id = station.program.events.back().event.id;
    ASSERT_TRUE(station.agent.refuse(id, wire::CmReason::kUnsupported, {}, now));
    EXPECT_FALSE(station.agent.refuse(id, wire::CmReason::kUnsupported, {}, now)) << "once";
    station.take(remote(9), forged(i), now);
  }
  EXPECT_EQ(station.host.count, 50);
  station.take(remote(9), forged(999), now + seconds(1));
  EXPECT_EQ(station.host.count, 51);
  EXPECT_EQ(station.host.sent.back().as<wire::CmRej>().reason, wire::CmReason::kUnsupported);
}

// A program's own decision is told once in any case: credits and the backlog bound it.
TEST(Flood, HoldsBackNoRejectionByAProgram) {
  Station station(2, without_limit());
  const Time now{seconds(1000)};
  ASSERT_TRUE(station.agent.listen(kService, 16, station.program, nullptr));
  for (std::uint32_t i = 0; i < 1000; ++i) {
    station.take(remote(9), forged(i), now);
    const ConnectionId id = station.program.events.back().event.id;
    ASSERT_TRUE(station.agent.reject(id, wire::CmReason::kConsumer, {}, now));
  }
  EXPECT_EQ(station.host.count, 1000);
  for (std::uint32_t i = 0; i < 1000; ++i) station.take(remote(9), forged(i), now);
  EXPECT_EQ(station.host.count, 1000 + 50) << "for repeated requests";
}

TEST(Flood, OfPacketsForUnknownQueuePairsDrawsFewRejections) {
  Station station(2);
  const Time now{seconds(1000)};
  for (int i = 0; i < 10'000; ++i) station.agent.reject_unknown(remote(9), now);
  EXPECT_EQ(station.host.count, 50);
  const auto& rej = station.host.sent.front().as<wire::CmRej>();
  EXPECT_EQ(rej.reason, wire::CmReason::kStale);
  EXPECT_EQ(rej.local_id | rej.remote_id, 0U);
  for (std::uint32_t i = 0; i < 10'000; ++i) station.agent.reject_unknown(spoofed(i), now);
  EXPECT_EQ(station.host.count, 1000);
}

TEST(Flood, OfDreqsForUnknownConnectionsDrawsFewReplies) {
  Station station(2);
  const Time now{seconds(1000)};
  wire::CmDreq dreq;
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    dreq.local_id = dreq.remote_id = i + 1;
    station.take(remote(9), {0, i, 0, dreq}, now);
  }
  EXPECT_EQ(station.host.count, 50);
}

// The attacker sees the id of a connection of its own, and no REP to another address.
TEST(Flood, OfForgedRtusWithGuessedIdsEstablishesNothing) {
  constexpr std::uint32_t kForged = 20;
  Station station(2);
  Acceptor acceptor(station);
  ASSERT_TRUE(station.agent.listen(kService, 128, acceptor, nullptr));
  station.take(remote(9), forged(kForged), acceptor.now);
  const std::uint32_t own = station.host.sent.at(0).as<wire::CmRep>().local_id;
  for (std::uint32_t i = 0; i < kForged; ++i) station.take(spoofed(i), forged(i), acceptor.now);
  for (std::uint32_t i = 0; i < kForged; ++i) {
    for (std::uint32_t step = 1; step <= kForged; ++step) {
      const wire::CmRtu rtu{i + 1, own + step, {}};
      station.take(spoofed(i), {0, i, 0, rtu}, acceptor.now);
    }
  }
  EXPECT_EQ(acceptor.count(EventKind::kRequest), kForged + 1);
  EXPECT_EQ(acceptor.count(EventKind::kEstablished), 0U);
}

// Replies go to the source of the packet: nothing in a message names another place.
TEST(Flood, ReachesNoThirdParty) {
  Station station(2);
  Acceptor acceptor(station);
  ASSERT_TRUE(station.agent.listen(kService, 128, acceptor, nullptr));
  wire::CmMad mad = forged(1);
  auto& req = std::get<wire::CmReq>(mad.message);
  req.primary.local_gid.fill(std::byte{7});
  req.data.fill(std::byte{7});
  station.take(remote(9), mad, acceptor.now);
  station.take(remote(9), mad, acceptor.now);
  while (station.agent.due() != Time::max()) station.agent.advance(station.agent.due());
  EXPECT_EQ(station.host.sent.size(), 5);
  for (const Sent& each : station.host.sent) EXPECT_EQ(each.to, remote(9));
}

TEST(Flood, OfARequestThatIsRejectedLateDrawsNoFifthPacket) {
  for (unsigned repetitions = 0; repetitions <= 3; ++repetitions) {
    Pair pair;
    pair.ask();
    const std::uint64_t transaction = pair.a.host.sent.at(0).mad.transaction;
    pair.carry();
    const std::size_t before = pair.b.host.count;
    pair.accept();
    for (unsigned i = 0; i < repetitions; ++i) {
      pair.now = pair.b.agent.due();
      pair.b.agent.advance(pair.now);
    }
    pair.b.host.sent.clear();
    EXPECT_EQ(pair.b.host.count - before, 1 + repetitions);
    pair.b.agent.disconnect(pair.at_b, {}, pair.now);
    EXPECT_EQ(pair.b.host.count - before, std::min(2 + repetitions, 4U));
    pair.b.host.sent.clear();
    const wire::CmRtu rtu{pair.at_a, pair.at_b, {}};
    pair.b.take(pair.a.here, wire::CmMad{0, transaction, 0, rtu}, pair.now);
    ASSERT_EQ(pair.b.host.sent.size(), 1U) << "its requester has the REP";
    EXPECT_EQ(description_of(pair.b.host.sent[0].mad.message), "REJ(28)");
  }
}

}  // namespace
}  // namespace weft::cm
