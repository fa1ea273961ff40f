// SPDX-License-Identifier: BSD-2-Clause
// Do reliable datagrams keep their promises, whatever the network does?
//
// WEFT_SIMULATOR_SEED=N WEFT_SIMULATOR_RUNS=1 weft_rdm_test repeats the run that a failure names.
#include <gtest/gtest.h>

#include <sstream>

#include "base/seeds_support.h"
#include "simulated_user.h"

namespace weft::rdm::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct Scenario {
  std::uint64_t seed = 0;
  std::uint8_t users = 2;
  Weather weather;
  double marks = 0;
  double full = 0;
  std::size_t mtu = 1500;
  bool suspects = false;            // whether the peers live
  bool narrow_is_reported = false;  // when the paths begin to carry less (Weather::hole_from)
  int dies = -1;                    // a user whose host ends
  os::Time::duration dies_at{};
  bool death_is_reported = false;
  std::chrono::milliseconds raise_interval{600'000};
  Habits habits;

  static Scenario draw(std::uint64_t seed);
  std::string text() const;
};

Scenario Scenario::draw(std::uint64_t seed) {
  Random random(seed);
  Scenario drawn;
  drawn.seed = seed;
  const auto sometimes = [&](double most) {
    return happens(random, 0.5) ? std::uniform_real_distribution<>(0, most)(random) : 0;
  };
  drawn.users = happens(random, 0.2) ? 3 : 2;
  drawn.habits.operations = drawn.users == 2 ? 40 : 20;
  drawn.weather.loss = sometimes(0.15);
  drawn.weather.burst = sometimes(0.4);
  drawn.weather.duplication = sometimes(0.1);
  drawn.weather.corruption = sometimes(0.05);
  drawn.weather.reordering = sometimes(0.2);
  drawn.marks = sometimes(0.1);
  drawn.full = sometimes(0.05);
  drawn.mtu = happens(random, 0.5) ? 9000 : 1500;
  drawn.suspects = happens(random, 0.5);
  drawn.habits.not_ready = sometimes(0.3);
  drawn.habits.placed = sometimes(1);
  drawn.habits.late = sometimes(0.5);
  drawn.habits.cancelled = sometimes(0.2);
  drawn.habits.sleepy = sometimes(1);
  if (happens(random, 0.25)) {
    drawn.weather.cut_from = microseconds(up_to(random, 3000));
    drawn.weather.cut_until = drawn.weather.cut_from + milliseconds(up_to(random, 3000));
  }
  if (happens(random, 0.25)) {
    drawn.weather.hole_from = microseconds(up_to(random, 2000));
    drawn.narrow_is_reported = happens(random, 0.5);
    if (happens(random, 0.3)) drawn.raise_interval = milliseconds(20);
  }
  if (happens(random, 0.15)) {
    drawn.dies = static_cast<int>(up_to(random, drawn.users - 1U));
    drawn.dies_at = microseconds(up_to(random, 2000));
    drawn.death_is_reported = happens(random, 0.5);
  }
  return drawn;
}

std::string Scenario::text() const {
  std::ostringstream out;
  out << "seed " << seed << ": " << int{users} << " users, MTU " << mtu << ", loss " << weather.loss
      << ", burst " << weather.burst << ", duplication " << weather.duplication << ", corruption "
      << weather.corruption << ", reordering " << weather.reordering << ", marks " << marks
      << ", full " << full << ", not ready " << habits.not_ready << ", placed " << habits.placed
      << ", late " << habits.late << ", cancelled " << habits.cancelled << ", sleepy "
      << habits.sleepy << ", cut " << weather.cut_from.count() << " to "
      << weather.cut_until.count() << " ns" << (suspects ? ", doubts" : "");
  if (weather.hole_from != transport::Duration::max()) {
    out << ", narrow after " << weather.hole_from.count() << " ns"
        << (narrow_is_reported ? ", reported" : "");
  }
  if (dies >= 0) {
    out << ", user " << dies << " dies after " << dies_at.count() << " ns"
        << (death_is_reported ? ", reported" : "");
  }
  return out.str();
}

Regions& regions() {
  static Regions all;
  return all;
}

class Simulation {
 public:
  explicit Simulation(const Scenario& scenario)
      : scenario_(scenario),
        network_(scenario.weather, scenario.marks, scenario.seed),
        looks_(scenario.users, os::Time{}) {
    timeouts_.connect_timeout = timeouts_.peer_timeout = seconds(30);
    RdmOptions options;
    options.device = &timeouts_;
    options.raise_interval = scenario.raise_interval;
    options.first_source = static_cast<std::uint32_t>(scenario.seed % 100);
    for (std::uint8_t i = 0; i < scenario.users; ++i) {
      users_.push_back(std::make_unique<User>(network_, regions(), scenario.habits, options, i,
                                              scenario.users, scenario.mtu, scenario.full));
    }
    for (const auto& user : users_) user->meet(users_, scenario.suspects);
  }

  Network& network() { return network_; }
  User& user(std::uint8_t number) { return *users_[number]; }
  // Goes on until that holds; false when it does not within 10 minutes.
  template <class Holds>
  bool until(Holds holds) {
    return go_on_until(os::Time{} + minutes_, holds);
  }
  // Returns what was wrong first.
  std::string run() {
    if (!go_on_until(os::Time{} + minutes_, [this] { return over(); })) return wrong("has no end");
    for (const auto& user : users_) {
      if (is_dead(user->number)) continue;
      for (const auto& peer : users_) {
        if (peer != user && !is_dead(peer->number)) user->judge(*peer);
      }
      if (scenario_.dies < 0) user->judge_counter();
    }
    if (!wrong("").empty()) return wrong("");
    // Idle peers stay peers.
    go_on_until(network_.now + seconds(12), [] { return false; });
    for (const auto& user : users_) {
      if (scenario_.dies < 0 && user->any_source_closed()) return "an idle peer counts as gone";
    }
    return wrong("");
  }
  std::uint64_t packets() const { return network_.packets(); }

 private:
  static constexpr std::chrono::minutes minutes_{10};
  static constexpr std::uint64_t kMostSteps = 2'000'000;

  bool is_dead(int user) const {
    return user == scenario_.dies && network_.now >= os::Time{} + scenario_.dies_at;
  }
  bool over() const {
    for (const auto& user : users_) {
      if (is_dead(user->number)) continue;
      if (!user->over()) return false;
      const bool dies = scenario_.dies >= 0;
      if (dies && !user->knows_dead(static_cast<std::uint8_t>(scenario_.dies))) return false;
    }
    return true;
  }
  std::string wrong(const std::string& otherwise) const {
    for (const auto& user : users_) {
      if (!user->wrong().empty()) return user->wrong();
    }
    return otherwise;
  }

  template <class Holds>
  bool go_on_until(os::Time limit, Holds holds) {
    while (!holds()) {
      const auto next = std::ranges::min_element(looks_);
      const os::Time at = std::min(*next, network_.next());
      if (at >= limit || ++steps_ > kMostSteps || !wrong("").empty()) return false;
      network_.now = std::max(network_.now, at);
      become_narrow();
      if (network_.next() <= at) {
        deliver(network_.take());
      } else {
        take_turn(static_cast<std::uint8_t>(next - looks_.begin()));
      }
    }
    return true;
  }
  void take_turn(std::uint8_t user) {
    looks_[user] = is_dead(user) ? os::Time::max() : users_[user]->turn();
  }
  void deliver(Network::Parcel parcel) {
    const auto to = static_cast<std::uint8_t>(parcel.path.to.port() - 40'000);
    if (!is_dead(to)) {
      users_[to]->host.arrive(std::move(parcel));
      const os::Time soon = network_.now + microseconds(up_to(network_.random(), 3));
      looks_[to] = std::min(looks_[to], soon);
    } else if (scenario_.death_is_reported) {
      const auto from = static_cast<std::uint8_t>(parcel.path.from.port() - 40'000);
      os::UdpError error;
      error.peer = parcel.path.to;
      error.what = os::UdpError::What::kPortUnreachable;
      users_[from]->host.report(error);
      looks_[from] = std::min(looks_[from], network_.now);
    }
  }
  // The systems of all hosts hear of it at once.
  void become_narrow() {
    const bool narrow = network_.now >= os::Time{} + scenario_.weather.hole_from;
    if (!scenario_.narrow_is_reported || !narrow || narrowed_) return;
    narrowed_ = true;
    for (const auto& user : users_) {
      std::vector<os::SocketAddress> peers;
      for (const auto& peer : users_) {
        if (peer != user) peers.push_back(peer->host.address);
      }
      user->host.narrow(kNarrow, std::move(peers));
      looks_[user->number] = network_.now;
    }
  }

  // Bytes of a packet that gets through a hole, with its IP and UDP headers.
  static constexpr std::size_t kNarrow =
      wire::kMaxHeaderBytes + transport::kSurePathMtu + wire::kIcrcBytes + 28;

  const Scenario scenario_;
  Options timeouts_;
  Network network_;
  std::vector<std::unique_ptr<User>> users_;
  std::vector<os::Time> looks_;  // when each user will look next
  std::uint64_t steps_ = 0;
  bool narrowed_ = false;
};

// A path may fail in one direction, and for requests only: so the answers to the peer's requests,
// which are requests, too, never reach it.
TEST(RdmEngine, APeerIsToldThatItWasGivenUp) {
  Scenario scenario;
  scenario.seed = 7;
  Simulation simulation(scenario);
  simulation.network().loses = [&](const roce::Path& path, const Bytes& bytes) {
    wire::Packet packet;
    if (wire::parse(bytes, packet) != wire::Malformed::kNone) return false;
    return path.from == simulation.user(1).host.address &&
           wire::transport_of(packet.opcode) == wire::Transport::kReliableDatagram &&
           wire::layout_of(packet.opcode).request;
  };
  EXPECT_TRUE(
      simulation.until([&] { return simulation.user(0).over() && simulation.user(1).over(); }));
  EXPECT_TRUE(simulation.user(1).any_source_closed());
  EXPECT_GT(simulation.user(0).failed(), 0U);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kRuns = 25;  // each takes 20 times as long
#else
constexpr std::uint64_t kRuns = 400;  // each takes about a millisecond
#endif

struct RdmSimulations : ::testing::TestWithParam<unsigned> {};

TEST_P(RdmSimulations, AllThatWasAskedForEndsAsItShould) {
  const SimulatorSeeds seeds = SimulatorSeeds::of(GetParam(), kRuns);
  for (std::uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
    const Scenario scenario = Scenario::draw(seed);
    ASSERT_EQ(Simulation(scenario).run(), "") << scenario.text();
  }
}

// Coalesced messages that filled a packet were refused after the packets had become smaller (3518,
// 5742, 11415); a peer that was given up for dead waited for answers without end (1206).
TEST(RdmSimulation, RunsThatOnceFoundFaultsEndAsTheyShould) {
  for (const std::uint64_t seed : {1206, 3518, 5742, 11'415}) {
    const Scenario scenario = Scenario::draw(seed);
    EXPECT_EQ(Simulation(scenario).run(), "") << scenario.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RdmSimulations, ::testing::Range(0U, 6U));

}  // namespace
}  // namespace weft::rdm::testing
