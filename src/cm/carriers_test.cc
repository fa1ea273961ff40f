// SPDX-License-Identifier: BSD-2-Clause
// How does one agent serve packets and the mailbox of its port?
#include <gtest/gtest.h>

#include "test_support.h"

namespace weft::cm {
namespace {

using namespace testing;

Remote in_mailbox(int last) {
  Remote place = remote(last);
  place.carrier = Carrier::kMailbox;
  return place;
}

// A REQ with that number of its connection, queue pair and transaction.
wire::CmMad req_of(std::uint32_t number) {
  wire::CmReq req;
  req.local_id = req.qpn = number;
  req.service = kService;
  return {0, number, 0, req};
}

// An agent that listens.
struct Carriers : ::testing::Test {
  explicit Carriers(const AgentOptions& options = options_of(2)) : station(2, options) {
    listener = station.agent.listen(kService, 2, station.program, nullptr).value();
  }

  Station station;
  ListenerId listener = 0;
  Time now{seconds(1000)};
};

TEST_F(Carriers, WithinAHostNothingIsRepeatedAndNothingTimesOut) {
  const auto pass = [&] {
    now += std::chrono::hours(10);
    station.agent.advance(now);
    station.agent.deliver();
    return station.host.look() + station.program.look();
  };
  ConnectRequest request;
  request.to = in_mailbox(3);
  request.repeats = kNoRepetition;
  ASSERT_TRUE(station.agent.connect(request, station.program, nullptr, now));
  EXPECT_EQ(station.host.look(), "REQ");
  station.take(in_mailbox(1), req_of(1), now);
  const ConnectionId id = station.program.events.at(0).event.id;
  EXPECT_EQ(pass(), "request") << "an undecided one";
  ASSERT_TRUE(station.agent.accept(id, {}, station.program, nullptr, now));
  EXPECT_EQ(station.host.look(), "REP");
  EXPECT_EQ(pass(), "");
  EXPECT_EQ(station.agent.due(), Time::max());
}

// Over the network it asks whether the listener lives.
TEST_F(Carriers, ARepeatedRequestWithinAHostDrawsNoMra) {
  station.take(in_mailbox(1), req_of(1), now);
  EXPECT_EQ(station.program.look(), "request");
  for (int i = 0; i < 10; ++i) station.take(in_mailbox(1), req_of(1), now);
  EXPECT_EQ(station.host.look() + station.program.look(), "");
  station.take(remote(1), req_of(1), now);
  station.take(remote(1), req_of(1), now);
  EXPECT_EQ(station.host.look(), "MRA");
}

TEST_F(Carriers, EventsOfEachAreDeliveredByThemselves) {
  station.agent.take(remote(1), wire::write_cm(req_of(1)), now);
  station.agent.take(in_mailbox(1), req_of(1), {}, now);
  station.agent.deliver(Carrier::kMailbox);
  ASSERT_EQ(station.program.events.size(), 1U);
  EXPECT_EQ(station.program.events[0].event.remote, in_mailbox(1));
  EXPECT_TRUE(station.agent.has_events(Carrier::kPackets));
  EXPECT_FALSE(station.agent.has_events(Carrier::kMailbox));
  station.agent.deliver(Carrier::kPackets);
  EXPECT_EQ(station.program.look(), "request request");
  EXPECT_FALSE(station.agent.has_events());
}

TEST_F(Carriers, RequestsOfOneDisplaceNoneOfTheOther) {
  for (const std::uint32_t number : {1, 2}) station.take(in_mailbox(1), req_of(number), now);
  for (std::uint32_t number = 1; number <= 5; ++number) {
    station.take(spoofed(number), req_of(number), now);
  }
  for (const Heard& each : std::exchange(station.program.events, {})) {
    const bool displaced = each.event.kind == EventKind::kOverrun;
    EXPECT_FALSE(displaced && each.event.remote.carrier == Carrier::kMailbox);
  }
  EXPECT_EQ(station.stats.of(Stat::kRequestsDisplaced), 3U);
  station.take(in_mailbox(1), req_of(3), now);
  EXPECT_EQ(station.program.look(), "request overrun");
  station.agent.stop(listener, now);
  EXPECT_EQ(station.host.look(), "REJ(8) REJ(8) REJ(8) REJ(8)");
}

struct CarriersWithFewCredits : Carriers {
  CarriersWithFewCredits()
      : Carriers([] {
          AgentOptions options = options_of(2);
          options.requests = {2, 1};
          return options;
        }()) {}
};

// A flood ends none, and they are no way around the limits of packets.
TEST_F(CarriersWithFewCredits, RequestsOfTheMailboxTakeNoCreditsAndReturnNone) {
  for (std::uint32_t number = 1; number <= 10; ++number) {
    station.take(spoofed(number), req_of(number), now);
    station.take(in_mailbox(1), req_of(number), now);
    const ConnectionId id = station.program.events.back().event.id;
    ASSERT_EQ(station.program.events.back().event.remote, in_mailbox(1)) << number;
    ASSERT_TRUE(station.agent.accept(id, {}, station.program, nullptr, now));
    station.take(in_mailbox(1), {0, number, 0, wire::CmRtu{number, id, {}}}, now);
    station.take(in_mailbox(1), req_of(number), now);
  }
  EXPECT_EQ(station.stats.of(Stat::kRequestsHeldBack), 8U);
}

TEST_F(Carriers, AnswersWithinTheHostHaveNoLimit) {
  AgentOptions options;
  const unsigned most = options.answers.per_second;
  wire::CmDreq unknown;
  unknown.local_id = 1;
  for (unsigned i = 0; i < 2 * most; ++i) {
    station.take(spoofed(i), {0, i, 0, unknown}, now);
    station.take(in_mailbox(1), {0, i, 0, unknown}, now);
  }
  EXPECT_EQ(station.host.count, 2 * most + most);
}

}  // namespace
}  // namespace weft::cm
