// SPDX-License-Identifier: BSD-2-Clause
// What do forged requests cost, and do they shut out others?
#include <gtest/gtest.h>

#include "test_support.h"

namespace weft::cm {
namespace {

using namespace testing;

wire::CmMad request(std::uint32_t number, std::uint64_t service = kService) {
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
  Time heard(ConnectionId, void*) override { return {}; }
  std::size_t count(EventKind kind) const { return events[static_cast<std::size_t>(kind)]; }

  Agent& agent;
  Time now{seconds(1000)};
  std::size_t events[11] = {};
};

TEST(Flood, OfOneRequestDrawsFourPacketsInAll) {
  Station station(2);
  Acceptor acceptor(station);
  ASSERT_TRUE(station.agent.listen(kService, 128, acceptor, nullptr));
  station.take(remote(9), request(1), acceptor.now);
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
  for (std::uint32_t i = 0; i < 3; ++i) station.take(spoofed(i), request(i), now);
  EXPECT_EQ(station.program.events.at(3).event.remote, spoofed(0));
  EXPECT_EQ(station.program.look(), "request request request overrun");
  EXPECT_EQ(station.agent.connections(), 2);
  EXPECT_EQ(station.stats.of(Stat::kRequestsDisplaced), 1);
  station.agent.set_backlog(id, 1);
  station.agent.deliver();
  EXPECT_EQ(station.program.look(), "overrun");
  EXPECT_EQ(station.host.count, 0);
}

TEST(Flood, ReportsNothingOfRequestsThatWereDisplacedUnseen) {
  Station station(2);
  const Time now{seconds(1000)};
  ASSERT_TRUE(station.agent.listen(kService, 2, station.program, nullptr));
  for (std::uint32_t i = 0; i < 5; ++i) {
    station.agent.take(spoofed(i), wire::write_cm(request(i)), now);
  }
  station.agent.deliver();
  EXPECT_EQ(station.program.events.at(0).event.remote, spoofed(3));
  EXPECT_EQ(station.program.look(), "request request");
}

// 100,000 forged requests in a second: a REP each, a bounded number of entries, and a new peer gets
// through although its messages take a millisecond each way.
TEST(Flood, LetsANewPeerThrough) {
  Pair pair;
  pair.b.agent.stop(pair.listener);
  Acceptor acceptor(pair.b);
  ASSERT_TRUE(pair.b.agent.listen(kService, 1024, acceptor, nullptr));
  std::uint32_t number = 0;
  std::size_t most = 0;
  const auto flood = [&](int requests) {
    for (int i = 0; i < requests; ++i, ++number) {
      acceptor.now = pair.now += std::chrono::microseconds(10);
      pair.b.take(spoofed(number), request(number), pair.now);
      most = std::max(most, pair.b.agent.entries());
      if (number % 16 == 0)
        std::erase_if(pair.b.host.sent,
                      [&](const Sent& each) { return !(each.to == pair.a.here); });
    }
    pair.b.agent.advance(pair.now);
  };
  flood(50'000);
  pair.ask();
  pair.carry(pair.a, pair.b);
  flood(200);
  pair.carry(pair.b, pair.a);
  ASSERT_EQ(pair.a.program.look(), "reply");
  ASSERT_TRUE(pair.a.agent.confirm(pair.at_a, {}, pair.now));
  flood(200);
  pair.carry(pair.a, pair.b);
  EXPECT_EQ(acceptor.count(EventKind::kEstablished), 1);
  flood(49'600);
  EXPECT_EQ(number, 100'000);
  EXPECT_LE(most, 1024 + 2);
  EXPECT_LE(pair.b.host.count, 100'001 + 1024 * 3) << "a REP each; displaced ones repeat nothing";
  pair.a.agent.disconnect(pair.at_a, {}, pair.now);
  pair.carry();
  pair.pass(seconds(20), true);
  EXPECT_TRUE(pair.is_empty());
}

TEST(Flood, OfRejectedRequestsLeavesABoundedNumberOfEntries) {
  Station station(2);
  const Time now{seconds(1000)};
  ASSERT_TRUE(station.agent.listen(kService, 16, station.program, nullptr));
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    station.take(spoofed(i), request(i), now);
    const ConnectionId id = station.program.events.back().event.id;
    ASSERT_TRUE(station.agent.reject(id, wire::CmReason::kConsumer, {}, now));
  }
  EXPECT_LE(station.agent.entries(), 1024);
  EXPECT_EQ(station.host.count, 20'000);
}

// Answers without a state: 50 a second for a source, 1,000 in total.
TEST(Flood, DrawsFewRejections) {
  Station station(2);
  Time now{seconds(1000)};
  for (std::uint32_t i = 0; i < 10'000; ++i) station.take(remote(9), request(i), now);
  EXPECT_EQ(station.host.count, 50);
  EXPECT_EQ(station.stats.of(Stat::kAnswersLimited), 10'000 - 50);
  for (int i = 0; i < 10'000; ++i) station.take(remote(9), request(1), now += milliseconds(1));
  EXPECT_EQ(station.host.count, 10 * 50 + 1) << "in ten seconds and the beginning of another";
}

TEST(Flood, FromManySourcesDrawsFewRejections) {
  Station station(2);
  Time now{seconds(1000)};
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    station.take(spoofed(i), request(i), now += std::chrono::microseconds(10));
  }
  EXPECT_EQ(station.host.count, 1000);
  EXPECT_EQ(station.agent.entries(), 0);
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

// Replies go to the source of the packet: nothing in a message names another place.
TEST(Flood, ReachesNoThirdParty) {
  Station station(2);
  Acceptor acceptor(station);
  ASSERT_TRUE(station.agent.listen(kService, 128, acceptor, nullptr));
  wire::CmMad forged = request(1);
  auto& req = std::get<wire::CmReq>(forged.message);
  req.primary.local_gid.fill(std::byte{7});
  req.data.fill(std::byte{7});
  station.take(remote(9), forged, acceptor.now);
  station.take(remote(9), forged, acceptor.now);
  while (station.agent.due() != Time::max()) station.agent.advance(station.agent.due());
  EXPECT_EQ(station.host.sent.size(), 5);
  for (const Sent& each : station.host.sent) EXPECT_EQ(each.to, remote(9));
}

}  // namespace
}  // namespace weft::cm
