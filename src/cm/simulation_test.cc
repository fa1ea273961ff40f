// SPDX-License-Identifier: BSD-2-Clause
// Do both ends of each connection agree, whatever the network and the programs do?
//
// WEFT_SIMULATOR_SEED=N WEFT_SIMULATOR_RUNS=1 weft_cm_test --gtest_filter='Seeds/CmSimulations*/0'
// repeats the run that a failure names.
#include <gtest/gtest.h>

#include "base/seeds_support.h"
#include "simulated_attacker.h"

namespace weft::cm::testing {
namespace {

void begin(Process& process, const Scenario& scenario) {
  process.be_busy(scenario.calls, scenario.period);
  for (unsigned user = 0; user < 2; ++user) {
    process.user(user).welcome_strangers = scenario.forgeries != 0;
  }
}

// Returns what was wrong first.
std::string run(const Scenario& scenario) {
  World world(scenario);
  Attacker attacker(world);
  for (unsigned i = 0; i < scenario.processes; ++i) begin(*world.process(i), scenario);
  attacker.attack(scenario.forgeries, scenario.period);
  if (scenario.ends >= 0) {
    const auto number = static_cast<unsigned>(scenario.ends);
    world.go_on_until(Time{} + scenario.ends_at);
    world.end(number);
    if (scenario.restarts_after != nanoseconds::max()) {
      world.go_on_for(scenario.restarts_after);
      begin(world.begin(number), scenario);
    }
  }
  world.go_on_for(scenario.period);
  world.network().repair();
  Time& trusted_from = world.ledger().trusted_from;
  trusted_from = std::min(trusted_from, world.network().now + seconds(3));
  // Each wait has its time limit, and these follow each other.
  world.go_on_for(scenario.habits.longest_pause * 3 + scenario.repeats.limit +
                  scenario.agents.packets.undecided_limit + scenario.agents.packets.replies.limit +
                  scenario.agents.peer_timeout + seconds(10));
  // One connection of each peer is probed at a time.
  world.go_on_for(2 * scenario.agents.watch.probe_after * world.ledger().watched());
  if (world.ledger().wrong().empty()) world.ledger().check_settled();
  world.close();
  return world.ledger().wrong();
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kRuns = 25;  // each takes ten times as long
#else
constexpr std::uint64_t kRuns = 400;
#endif

struct CmSimulations : ::testing::TestWithParam<unsigned> {};

TEST_P(CmSimulations, BothEndsAgreeAndEachEventComesOnceAndNothingIsLeft) {
  const SimulatorSeeds seeds = SimulatorSeeds::of(GetParam(), kRuns);
  for (std::uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
    const Scenario scenario = Scenario::draw(seed);
    ASSERT_EQ(run(scenario), "") << scenario.text();
  }
}

// A late REJ of an earlier copy of the REQ ended a connection (513), events of a stopped listener
// were reported (41779), another instance with the same number took an RTU for its own (1006698).
TEST(CmSimulation, RunsThatOnceFoundFaultsEndAsTheyShould) {
  for (const std::uint64_t seed : {513, 41'779, 1'006'698}) {
    const Scenario scenario = Scenario::draw_simple(seed);
    EXPECT_EQ(run(scenario), "") << scenario.text();
  }
}

Scenario lossy() {
  Scenario scenario;
  scenario.seed = 1;
  scenario.weather.loss = 0.1;
  scenario.habits.accepts = scenario.habits.confirms = scenario.habits.at_once = 1;
  return scenario;
}

// Process 0 asks process 1.
void expect_nearly_all_connections(World& world) {
  constexpr std::size_t kConnections = 1000;
  world.process(1)->user(0).listen(SimulatedUser::kFirstService, kConnections);
  std::vector<End*> ends;
  for (std::size_t i = 0; i < kConnections; ++i) {
    ends.push_back(world.process(0)->user(0).connect(1, SimulatedUser::kFirstService, false));
  }
  world.go_on_for(seconds(10));
  const auto count = [&](auto holds) { return std::count_if(ends.begin(), ends.end(), holds); };
  // The RTU or the repeated REP gets lost four times in a row: 0.07 %.
  const auto agreed = count([](const End* end) { return end->agreed(); });
  EXPECT_GE(agreed, 990);
  for (End* end : ends) {
    if (!end->agreed()) continue;
    End& ending = end->number % 2 == 0 ? *end : *end->other;
    ending.user->disconnect(ending);
  }
  world.go_on_for(seconds(3));
  const auto over = [](const End* end) { return end->state == End::State::kOver; };
  EXPECT_GE(count([&](auto end) { return over(end) && end->other && over(end->other); }), 990);
  EXPECT_EQ(world.ledger().wrong(), "");
}

// Repetitions of each message make up for losses, without the help of probes.
TEST(CmSimulation, ALossyNetworkMakesAndEndsNearlyAllConnections) {
  World world(lossy());
  expect_nearly_all_connections(world);
}

// The REQ is repeated to the listener, which does not answer any more.
TEST(CmSimulation, ALossyNetworkHandsOverNearlyAllRequests) {
  Scenario scenario = lossy();
  scenario.processes = 4;
  scenario.hosts = 2;
  scenario.habits.hands_over = 1;
  World world(scenario);
  expect_nearly_all_connections(world);
  for (const End& end : world.ledger().ends()) EXPECT_TRUE(end.life != 1 || end.forwarded);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CmSimulations, ::testing::Range(0U, 6U));

}  // namespace
}  // namespace weft::cm::testing
