// SPDX-License-Identifier: BSD-2-Clause
// What can an off-path attacker do to connections, and how much does it make a manager send?
#include <gtest/gtest.h>

#include "simulated_attacker.h"

namespace weft::cm::testing {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr unsigned kFlood = 20'000;  // each packet takes ten times as long
constexpr std::uint64_t kForgeries = 4;
#else
constexpr unsigned kFlood = 100'000;
constexpr std::uint64_t kForgeries = 20;
#endif

constexpr std::uint64_t kListened = SimulatedUser::kFirstService;
constexpr std::uint64_t kUnheard = kListened + 3;

// Processes in a calm world whose users accept and confirm all at once.
Scenario obliging(std::uint64_t seed, unsigned processes = 2) {
  Scenario scenario;
  scenario.seed = seed;
  scenario.processes = processes;
  scenario.habits.accepts = scenario.habits.confirms = scenario.habits.at_once = 1;
  return scenario;
}

// The same on two hosts, of which one has several processes, which accept requests for each other.
Scenario handing_over(std::uint64_t seed) {
  Scenario scenario = obliging(seed, 3);
  scenario.hosts = 2;
  scenario.relays = true;
  scenario.habits.hands_over = 1;
  scenario.habits.two_places = 0.5;
  return scenario;
}

wire::CmMad spoofed_req(Random& random, std::uint64_t service = kListened) {
  wire::CmReq req;
  req.local_id = static_cast<std::uint32_t>(random());
  req.ca_guid = random();
  req.service = service;
  req.qpn = static_cast<std::uint32_t>(random()) & 0xFF'FFFF;
  return {0, random(), 0, req};
}

// A process that listens, and an attacker; counts the messages to hosts that sent none.
struct Siege {
  explicit Siege(const Scenario& scenario) : world(scenario), attacker(world) {
    for (unsigned i = 0; i < scenario.processes; ++i) {
      user(i).welcome_strangers = true;
      user(i).listen(kListened, 16);
    }
    world.network().sent = [this](const Parcel& parcel) {
      if (parcel.to.address.port() >= 50'000) ++drawn;
    };
  }
  SimulatedUser& user(unsigned process) { return world.process(process)->user(0); }
  std::size_t entries() { return world.process(0)->agent().entries(); }

  World world;
  Attacker attacker;
  std::size_t drawn = 0;
};

// Each process of three has connections with each.
void expect_undisturbed_connections(const Scenario& scenario) {
  Siege siege(scenario);
  World& world = siege.world;
  std::vector<End*> ends;
  for (unsigned i = 0; i < 12; ++i) {
    ends.push_back(siege.user(i % 3).connect(i / 3 % 3, kListened, i % 2 == 0));
  }
  world.go_on_for(milliseconds(10));
  for (const End* end : ends) ASSERT_TRUE(end->agreed()) << world.ledger().wrong();
  world.ledger().forged = true;
  siege.attacker.attack(3000, seconds(10));
  world.go_on_for(seconds(15));
  ASSERT_EQ(world.ledger().wrong(), "") << scenario.text();
  for (const End* end : ends) EXPECT_TRUE(end->agreed()) << scenario.text() << ", " << end->number;
  world.close();
  EXPECT_EQ(world.ledger().wrong(), "") << scenario.text();
}

TEST(HostileNetwork, ForgedMessagesNeitherEndNorDisplaceAConnection) {
  for (std::uint64_t seed = 1; seed <= kForgeries; ++seed) {
    expect_undisturbed_connections(obliging(seed, 3));
    expect_undisturbed_connections(handing_over(seed));
  }
}

// Process 0 asks process 1.
void expect_undisturbed_attempts(Scenario scenario) {
  scenario.habits.at_once = 0;  // while the users take their time
  scenario.repeats.first = milliseconds(100);
  Siege siege(scenario);
  World& world = siege.world;
  std::vector<End*> ends;
  for (unsigned i = 0; i < 300; ++i) {
    world.at(milliseconds(30 * i),
             [&] { ends.push_back(siege.user(0).connect(1, kListened, true)); });
  }
  world.ledger().forged = true;
  // Fewer REQs than the backlog during an attempt, so that none displaces it.
  siege.attacker.attack(2000, seconds(10));
  world.go_on_for(seconds(20));
  ASSERT_EQ(world.ledger().wrong(), "");
  for (const End* end : ends) EXPECT_TRUE(end->agreed()) << end->number;
  world.close();
  EXPECT_EQ(world.ledger().wrong(), "");
}

TEST(HostileNetwork, ForgedAnswersDoNotDisturbAnAttempt) {
  expect_undisturbed_attempts(obliging(1));
}

TEST(HostileNetwork, ForgedAnswersDoNotDisturbARequestThatIsHandedOver) {
  Scenario scenario = handing_over(1);
  scenario.hosts = 1;
  expect_undisturbed_attempts(scenario);
}

TEST(HostileNetwork, ASpoofedReqThatIsHandedOverDrawsAtMostFourPackets) {
  Scenario scenario = handing_over(1);
  scenario.habits.delays = 0;
  Siege siege(scenario);
  Random random(1);
  for (unsigned i = 0; i < 20; ++i) {
    siege.drawn = 0;
    siege.attacker.send(Attacker::silent_host(i), 0, spoofed_req(random));
    siege.world.go_on_for(seconds(60));
    EXPECT_LE(siege.drawn, 4U);
  }
  const auto& ends = siege.world.ledger().ends();
  EXPECT_EQ(std::count_if(ends.begin(), ends.end(), [](auto& end) { return end.adopted; }), 20);
  siege.world.close();
  EXPECT_EQ(siege.world.ledger().wrong(), "");
}

TEST(HostileNetwork, ASpoofedReqDrawsAtMostFourPackets) {
  Siege siege(obliging(1));
  Random random(1);
  for (unsigned i = 0; i < 10; ++i) {
    siege.drawn = 0;
    siege.attacker.send(Attacker::silent_host(i), 0, spoofed_req(random));
    siege.world.go_on_for(seconds(60));
    EXPECT_LE(siege.drawn, 4U);
  }
  siege.drawn = 0;
  siege.attacker.send(Attacker::silent_host(1), 0, spoofed_req(random, kUnheard));
  siege.world.go_on_for(seconds(60));
  EXPECT_LE(siege.drawn, 1U);
  siege.world.close();
  EXPECT_EQ(siege.world.ledger().wrong(), "");
}

TEST(HostileNetwork, ADelayedDecisionDrawsNoMorePackets) {
  Scenario scenario = obliging(1);
  scenario.habits.delays = 1;
  Siege siege(scenario);
  Random random(1);
  for (unsigned i = 0; i < 10; ++i) {
    siege.drawn = 0;
    siege.attacker.send(Attacker::silent_host(i), 0, spoofed_req(random));
    siege.world.go_on_for(seconds(60));
    EXPECT_LE(siege.drawn, 4U);
  }
}

// The DREQ starts a probe; an answer to that is forged at the same moment.
TEST(HostileNetwork, AForgedAnswerToAProbeEndsNothing) {
  Siege siege(obliging(1));
  World& world = siege.world;
  const End* const end = siege.user(0).connect(1, kListened, true);
  world.go_on_for(milliseconds(10));
  ASSERT_TRUE(end->agreed());
  Random random(1);
  for (unsigned i = 0; i < 200; ++i) {
    siege.attacker.send(end->peer, 0,
                        {0, random(), 0, wire::CmDreq{end->other->id, end->id, end->qpn(), {}}});
    for (unsigned status = 0; status < 3; ++status) {
      wire::CmApr apr;
      apr.local_id = end->other->id;
      apr.remote_id = end->id;
      apr.status = static_cast<std::uint8_t>(status);
      siege.attacker.send(end->peer, 0, {0, random(), 0, apr});
    }
    world.go_on_for(milliseconds(300));
    ASSERT_TRUE(end->agreed()) << i;
  }
  world.close();
  EXPECT_EQ(world.ledger().wrong(), "");
}

TEST(HostileNetwork, ARestartedPeerIsReachableAgainWithinTwoSeconds) {
  Scenario scenario = obliging(1);
  scenario.agents.watch.probe_after = seconds(20);  // so that only its REQ tells of it
  Siege siege(scenario);
  World& world = siege.world;
  for (unsigned i = 0; i < 50; ++i) {
    siege.user(i % 2).connect(1 - i % 2, kListened, true);
    world.go_on_for(milliseconds(1));
  }
  ASSERT_EQ(world.ledger().watched(), 100);
  world.end(1);
  world.begin(1).user(0).listen(kListened);
  const End* const old = &world.ledger().ends().front();
  const End* const from_it = siege.user(1).connect(0, kListened, true);
  const End* const to_it = siege.user(0).connect(1, kListened, true);
  world.go_on_for(seconds(2));
  EXPECT_TRUE(from_it->agreed());
  EXPECT_TRUE(to_it->agreed());
  EXPECT_EQ(world.ledger().watched(), 4) << "old connections are left";
  EXPECT_EQ(old->state, End::State::kOver);
  world.close();
  EXPECT_EQ(world.ledger().wrong(), "");
}

TEST(HostileNetwork, NewPeersGetThroughAFloodOfSpoofedReqs) {
  constexpr nanoseconds kPeriod = seconds(2);
  Siege siege(obliging(1));
  World& world = siege.world;
  Random random(1);
  std::size_t most = 0;
  for (unsigned i = 0; i < kFlood; ++i) {
    world.at(kPeriod / kFlood * i, [&, i] {
      siege.attacker.send(Attacker::silent_host(i % 10'000), 0, spoofed_req(random));
      most = std::max(most, siege.entries());
    });
  }
  std::vector<End*> ends;
  for (unsigned i = 0; i < 20; ++i) {
    world.at(kPeriod / 20 * i, [&] { ends.push_back(siege.user(1).connect(0, kListened, true)); });
  }
  world.go_on_for(kPeriod + milliseconds(100));
  ASSERT_EQ(world.ledger().wrong(), "");
  for (const End* end : ends) EXPECT_TRUE(end->agreed()) << end->number;
  EXPECT_LE(most, 16 + 20) << "the backlog and the connections";
  const RequestRates rates;
  EXPECT_LE(siege.drawn, 4 * (rates.most + 2 * rates.per_second));
  world.go_on_for(seconds(60));
  EXPECT_LE(siege.entries(), 20U);
  world.close();
  EXPECT_EQ(world.ledger().wrong(), "");
}

TEST(HostileNetwork, AnswersWithoutStateAreLimitedPerSourceAndInTotal) {
  Siege siege(obliging(1));
  World& world = siege.world;
  const AnswerRates rates;
  Random random(1);
  const auto flood = [&](unsigned sources) {
    siege.drawn = 0;
    for (unsigned i = 0; i < 10'000; ++i) {
      world.at(microseconds(100) * i, [&, i, sources] {
        wire::CmMad mad = spoofed_req(random, kUnheard);
        if (i % 2 == 0) mad.message = wire::CmDreq{1, 2, 3, {}};
        siege.attacker.send(Attacker::silent_host(i % sources), 0, mad);
      });
    }
    world.go_on_for(seconds(2));
    return siege.drawn;
  };
  // A second touches two of those that are counted.
  EXPECT_LE(flood(1), 2U * rates.per_source_and_second);
  EXPECT_LE(flood(5000), 2 * rates.per_second);
  world.close();
  EXPECT_EQ(world.ledger().wrong(), "");
}

}  // namespace
}  // namespace weft::cm::testing
