// SPDX-License-Identifier: BSD-2-Clause
// Is all work carried out once and in order, whatever the network does?
#include "simulator.h"

#include <gtest/gtest.h>

#include "base/seeds_support.h"

namespace weft::transport::testing {
namespace {

using work::CompletionStatus;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kRuns = 100;  // each takes ten times as long
constexpr std::uint64_t kLongRuns = 2;
#else
constexpr std::uint64_t kRuns = 1000;
constexpr std::uint64_t kLongRuns = 10;
#endif

TEST(Simulator, AllWorkIsCarriedOutOnceAndInOrderUnderAnyWeather) {
  const SimulatorSeeds seeds = SimulatorSeeds::of(0, kRuns);
  for (std::uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
    const Scenario scenario = Scenario::draw(seed);
    const Outcome outcome = run(scenario);
    ASSERT_EQ(outcome.wrong, "") << scenario.text();
    for (const CompletionStatus status :
         {CompletionStatus::kRetryExceeded, CompletionStatus::kRnrRetryExceeded,
          CompletionStatus::kRemoteInvalidRequest, CompletionStatus::kFlushed}) {
      ASSERT_EQ(outcome.ended[static_cast<std::size_t>(status)], 0U) << scenario.text();
    }
  }
}

Scenario two_devices() {
  Scenario scenario;
  scenario.seed = 7;
  scenario.works = 300;
  scenario.settings.kind = wire::Transport::kReliableDatagram;
  scenario.settings.selective = true;
  scenario.settings.ack_timeout = std::chrono::milliseconds(20);
  return scenario;
}

std::uint64_t ended(const Outcome& outcome, CompletionStatus status) {
  return outcome.ended[static_cast<std::size_t>(status)];
}

TEST(Simulator, WithoutLossNothingIsSentTwice) {
  for (const bool selective : {true, false}) {
    Scenario scenario = two_devices();
    scenario.settings.selective = selective;
    const Outcome outcome = run(scenario);
    EXPECT_EQ(outcome.wrong, "");
    EXPECT_EQ(outcome.again, 0U);
    EXPECT_EQ(ended(outcome, CompletionStatus::kSuccess), 2 * scenario.works);
  }
}

TEST(Simulator, APeerThatNamesWhatItLacksGetsLittleElseAgain) {
  Scenario scenario = two_devices();
  scenario.longest = 100'000;
  scenario.weather.loss = 0.02;
  const Outcome named = run(scenario);
  EXPECT_EQ(named.wrong, "");
  EXPECT_LT(named.again, named.packets * 6 / 100);
  scenario.settings.selective = false;
  const Outcome from_there = run(scenario);
  EXPECT_EQ(from_there.wrong, "");
  EXPECT_GT(from_there.again, named.again);
}

// Reads of many hundred packets, whose parts have other lengths whenever the window has changed.
TEST(Simulator, LongReadsArriveWhole) {
  for (const double loss : {0.0, 0.001, 0.01}) {
    for (std::uint64_t seed = 1; seed <= kLongRuns; ++seed) {
      Scenario scenario = two_devices();
      scenario.seed = seed;
      scenario.settings.path_mtu = 256;
      scenario.settings.max_window = 512;
      scenario.longest = 250'000;
      scenario.refused = scenario.gone = 0.05;
      scenario.weather.loss = loss;
      const Outcome outcome = run(scenario);
      EXPECT_EQ(outcome.wrong, "") << "seed " << seed << ", loss " << loss;
      EXPECT_GT(ended(outcome, CompletionStatus::kRemoteAccess), 0U);
      if (loss == 0) {
        EXPECT_EQ(outcome.again, 0U);
      }
    }
  }
}

TEST(Simulator, AWireThatIsCutForASecondCostsNothingButTime) {
  for (const bool selective : {true, false}) {
    Scenario scenario = two_devices();
    scenario.settings.selective = selective;
    scenario.settings.ack_timeout = std::chrono::milliseconds(500);
    scenario.weather.cut_from = std::chrono::microseconds(100);
    scenario.weather.cut_until = std::chrono::seconds(1);
    const Outcome outcome = run(scenario);
    EXPECT_EQ(outcome.wrong, "");
    EXPECT_EQ(ended(outcome, CompletionStatus::kSuccess), 2 * scenario.works);
    EXPECT_GT(outcome.took, std::chrono::seconds(1));
    EXPECT_LT(outcome.took, std::chrono::seconds(3));
  }
}

// With packets that a narrower way would not carry.
Scenario large_packets(double loss) {
  Scenario scenario = two_devices();
  scenario.settings.path_mtu = 4096;
  scenario.settings.ack_timeout = std::chrono::milliseconds(500);
  scenario.longest = 100'000;
  scenario.weather.loss = loss;
  return scenario;
}

// Neither end is told, and what is in flight may be large requests, large answers, or both.
TEST(Simulator, WhereLargePacketsVanishSmallerOnesAreAgreedUpon) {
  for (const auto begins : {std::chrono::microseconds(0), std::chrono::microseconds(200)}) {
    for (const double loss : {0.0, 0.05}) {
      Scenario scenario = large_packets(loss);
      scenario.weather.hole_from = begins;
      const Outcome outcome = run(scenario);
      EXPECT_EQ(outcome.wrong, "");
      EXPECT_EQ(ended(outcome, CompletionStatus::kSuccess), 2 * scenario.works);
      EXPECT_EQ(outcome.narrowed, 2U);
    }
  }
}

TEST(Simulator, LossAndCutsAreNotTakenForAWayThatCarriesLess) {
  for (const double loss : {0.05, 0.2}) {
    Scenario scenario = large_packets(loss);
    scenario.weather.cut_from = std::chrono::milliseconds(2);
    scenario.weather.cut_until = std::chrono::seconds(1);
    const Outcome outcome = run(scenario);
    EXPECT_EQ(outcome.wrong, "");
    EXPECT_EQ(outcome.narrowed, 0U);
  }
}

TEST(Simulator, APeerThatNeverAnswersIsGivenUpInTime) {
  Scenario scenario = two_devices();
  scenario.weather.loss = 1;
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.wrong, "");
  EXPECT_EQ(ended(outcome, CompletionStatus::kRetryExceeded), 2U);
  EXPECT_EQ(ended(outcome, CompletionStatus::kFlushed), 2 * scenario.works - 2);
  const Duration least = scenario.settings.ack_timeout * (scenario.settings.retries + 1);
  EXPECT_GE(outcome.took, least);
  EXPECT_LE(outcome.took, least + 2 * scenario.settings.ack_timeout);
}

TEST(Simulator, AReceiverThatIsNeverReadyIsGivenUpWhenSoAsked) {
  Scenario scenario = two_devices();
  scenario.not_ready = 1;
  scenario.settings.rnr_retries = 3;
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.wrong, "");
  EXPECT_EQ(ended(outcome, CompletionStatus::kRnrRetryExceeded), 2U);
}

TEST(Simulator, AMessageThatIsGivenUpComesAgain) {
  Scenario scenario = two_devices();
  scenario.given_up = 0.05;
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.wrong, "");
  EXPECT_EQ(ended(outcome, CompletionStatus::kSuccess), 2 * scenario.works);
}

TEST(Simulator, ARefusalEndsAConnectionAndOfDatagramsTheRequestOnly) {
  Scenario scenario = two_devices();
  scenario.refused = 0.1;
  const Outcome datagrams = run(scenario);
  EXPECT_EQ(datagrams.wrong, "");
  EXPECT_EQ(ended(datagrams, CompletionStatus::kFlushed), 0U);
  EXPECT_GT(ended(datagrams, CompletionStatus::kRemoteAccess), 10U);
  scenario.settings.kind = wire::Transport::kReliableConnection;
  scenario.detailed = scenario.settings.selective;
  const Outcome connection = run(scenario);
  EXPECT_EQ(connection.wrong, "");
  EXPECT_EQ(ended(connection, CompletionStatus::kRemoteAccess), 2U);
  EXPECT_GT(ended(connection, CompletionStatus::kFlushed), 200U);
}

}  // namespace
}  // namespace weft::transport::testing
