// SPDX-License-Identifier: BSD-2-Clause
// Do connections of programs keep their promises, whatever the network does?
//
// WEFT_SIMULATOR_SEED=N WEFT_SIMULATOR_RUNS=1 weft_rdm_test repeats the run that a failure names.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "base/seeds_support.h"
#include "simulated_port.h"
#include "wire/endian.h"

namespace weft::rdm::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct Scenario {
  std::uint64_t seed = 0;
  Weather weather;
  std::uint8_t hosts = 2;
  double marks = 0;
  double full = 0;
  std::size_t mtu = 1500;
  unsigned actions = 200;
  milliseconds request_timeout{5000};
  std::size_t backlog = 16;
  int dies_after = -1;  // actions
  bool reports = true;  // of ports that are gone
  double hasty = 0.1;   // that an action ends a connection

  static Scenario draw(std::uint64_t seed) {
    Random random(seed);
    Scenario drawn;
    drawn.seed = seed;
    const auto sometimes = [&](double most) {
      return happens(random, 0.5) ? std::uniform_real_distribution<>(0, most)(random) : 0;
    };
    drawn.weather.loss = sometimes(0.15);
    drawn.weather.burst = sometimes(0.4);
    drawn.weather.duplication = sometimes(0.1);
    drawn.weather.corruption = sometimes(0.05);
    drawn.weather.reordering = sometimes(0.2);
    if (happens(random, 0.3)) drawn.weather.late = milliseconds(20);
    drawn.hosts = happens(random, 0.3) ? 3 : 2;
    drawn.marks = sometimes(0.1);
    drawn.full = sometimes(0.05);
    drawn.mtu = happens(random, 0.5) ? 9000 : 1500;
    drawn.actions = static_cast<unsigned>(20 + up_to(random, 200));
    drawn.hasty = happens(random, 0.5) ? 0.2 : 0.02;
    drawn.backlog = happens(random, 0.3) ? 2 : 16;
    if (happens(random, 0.25)) {
      drawn.weather.cut_from = microseconds(up_to(random, 100'000));
      drawn.weather.cut_until = drawn.weather.cut_from + milliseconds(up_to(random, 8000));
    }
    if (happens(random, 0.25)) drawn.weather.hole_from = microseconds(up_to(random, 100'000));
    if (happens(random, 0.25)) drawn.dies_after = static_cast<int>(up_to(random, drawn.actions));
    drawn.reports = happens(random, 0.7);
    return drawn;
  }
  std::string text() const {
    std::ostringstream out;
    out << "WEFT_SIMULATOR_SEED=" << seed << " WEFT_SIMULATOR_RUNS=1: " << int{hosts} << " hosts, "
        << actions << " actions, MTU " << mtu << ", loss " << weather.loss << ", burst "
        << weather.burst << ", duplication " << weather.duplication << ", corruption "
        << weather.corruption << ", reordering " << weather.reordering << ", marks " << marks
        << ", full " << full << ", cut " << weather.cut_from.count() << " to "
        << weather.cut_until.count() << " ns";
    if (weather.hole_from != transport::Duration::max())
      out << ", narrow after " << weather.hole_from.count() << " ns";
    if (dies_after >= 0) out << ", a port dies after " << dies_after << " actions";
    return out.str();
  }
};

// One side of a connection: what it has sent.
struct Side {
  struct Sent {
    std::uint64_t tag = 0;
    Bytes bytes;
    bool arrives = false;  // it was reported as sent
    bool pending = false;
  };
  ConnectedPort* port = nullptr;  // null: it does not exist, or was killed
  ConnectionEnd* end = nullptr;
  bool killed = false;
  bool judged = false;
  os::Time left_at{};
  std::deque<Sent> sent;

  bool is_open() const { return port != nullptr && end->is_open() && !end->left; }
  bool is_over() const {
    return killed || (port != nullptr && (end->left || end->failures != 0 || end->ends != 0));
  }
};

// A connection, as both of its programs see it.
struct Talk {
  Side asks;
  Side answers;
};

Bytes content(std::size_t talk, bool asks, std::uint64_t tag, std::size_t length) {
  Bytes bytes(length);
  std::uint64_t state = (talk * 2 + (asks ? 1 : 0)) * 65'537 + tag;
  for (std::byte& byte : bytes) {
    state = state * 6'364'136'223'846'793'005 + 1'442'695'040'888'963'407;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

class ConnectionSimulation {
 public:
  explicit ConnectionSimulation(const Scenario& scenario)
      : scenario_(scenario), world_(scenario.weather, scenario.marks, scenario.seed) {
    device_.peer_timeout = seconds(20);
    device_.request_timeout = scenario.request_timeout;
    RdmOptions options;
    options.device = &device_;
    options.eager_limit = 4096;
    world_.reports = scenario.reports;
    for (std::uint8_t host = 0; host < scenario.hosts; ++host) {
      for (std::uint16_t i = 0; i < kPorts; ++i) {
        const auto number = static_cast<std::uint16_t>(40'000 + host * kPorts + i);
        ports_.push_back(&world_.add(options, host, number, scenario.mtu, scenario.full));
        if (i == 0)
          check(ports_.back()->connections->listen(scenario.backlog, *ports_.back()).ok(),
                "no listener");
      }
    }
  }

  // Returns what was wrong first.
  std::string run() {
    for (unsigned i = 0; i < scenario_.actions && wrong_.empty(); ++i) {
      if (static_cast<int>(i) == scenario_.dies_after) kill();
      act();
      world_.wake();
      world_.go_on_for(microseconds(up_to(random(), happens(random(), 0.1) ? 50'000 : 500)));
      judge();
    }
    for (ConnectedPort* port : ports_) {
      if (port != nullptr) port->takes = true;
    }
    settle("after the actions");
    for (Talk& talk : talks_) agree(talk);
    for (Talk& talk : talks_) {
      leave(talk.asks);
      leave(talk.answers);
    }
    settle("after the end");
    check(!wrong_.empty() || world_.is_quiet(), "something is left");
    for (ConnectedPort* port : ports_) {
      if (port != nullptr) check(port->requests.empty(), "a request is left");
    }
    return wrong_;
  }

 private:
  static constexpr std::uint16_t kPorts = 3;  // of a host: a listener and others

  Random& random() { return world_.network.random(); }
  void check(bool right, const std::string& what) {
    if (!right && wrong_.empty()) wrong_ = what;
  }
  bool is_listener(std::size_t place) const { return place % kPorts == 0; }
  ConnectedPort* any_port(bool listener) {
    std::vector<ConnectedPort*> found;
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      if (ports_[i] != nullptr && is_listener(i) == listener) found.push_back(ports_[i]);
    }
    return found.empty() ? nullptr : found[up_to(random(), found.size() - 1)];
  }

  void settle(const std::string& when) {
    // Requests beyond the backlog come in turn.
    for (int i = 0; i < 20; ++i) {
      decide_all();
      world_.wake();
      world_.go_on_for(seconds(10));
    }
    judge();
    if (!wrong_.empty()) wrong_ += ", " + when;
  }
  void act() {
    const double which = std::uniform_real_distribution<>(0, 1)(random());
    if (talks_.size() < 3 || which < 0.15) return ask();
    if (which < 0.4) return decide_all();
    if (which < 0.45) {
      ConnectedPort* const port = any_port(false);
      if (port != nullptr) port->takes = !port->takes;
      return;
    }
    const std::size_t number = up_to(random(), talks_.size() - 1);
    Talk& talk = talks_[number];
    const bool asks = happens(random(), 0.5);
    Side& side = asks ? talk.asks : talk.answers;
    if (happens(random(), scenario_.hasty)) return leave(side);
    for (std::uint64_t i = up_to(random(), 5); i-- != 0;) say(number, asks, side);
  }
  void ask() {
    ConnectedPort* const from = any_port(happens(random(), 0.1));
    const ConnectedPort* const to = any_port(!happens(random(), 0.1));
    if (from == nullptr || to == nullptr || talks_.size() == kMost) return;
    Bytes data(4 + up_to(random(), 252));
    wire::store<std::uint32_t>(data.data(), static_cast<std::uint32_t>(talks_.size()));
    Talk& talk = talks_.emplace_back();
    talk.asks.port = from;
    talk.asks.end = &from->request(to->host.address, data);
  }
  // Listeners answer what they have.
  void decide_all() {
    for (std::size_t i = 0; i < ports_.size(); i += kPorts) {
      if (ports_[i] == nullptr) continue;
      std::vector<link::ConnectionNumber> numbers;
      for (const auto& [number, request] : ports_[i]->requests) numbers.push_back(number);
      for (const auto number : numbers) decide(i, number);
    }
  }
  void decide(std::size_t place, link::ConnectionNumber number) {
    ConnectedPort& listener = *ports_[place];
    const link::ConnectionRequest request = listener.requests.at(number);
    ConnectedPort* const acceptor = ports_[place + 1 + up_to(random(), kPorts - 2)];
    const double which = std::uniform_real_distribution<>(0, 1)(random());
    Talk& talk = talks_[wire::load<std::uint32_t>(request.data.data())];
    if (which < 0.1 || acceptor == nullptr) {
      listener.connections->reject(number, request.data);
      listener.requests.erase(number);
    } else if (which < 0.15) {
      listener.connections->forward(number);
      acceptor->connections->reject(request);
      listener.requests.erase(number);
    } else if (ConnectionEnd* end = acceptor->accept(listener, number, request.data)) {
      check(talk.answers.end == nullptr, "a request was accepted twice");
      talk.answers.port = acceptor;
      talk.answers.end = end;
    }
  }
  void say(std::size_t talk, bool asks, Side& side) {
    if (!side.is_open()) return;
    const double which = std::uniform_real_distribution<>(0, 1)(random());
    const std::size_t length = up_to(random(), which < 0.6 ? 64 : which < 0.8 ? 4096 : 20'000);
    Side::Sent& sent = side.sent.emplace_back();
    sent.tag = side.sent.size();
    sent.bytes = content(talk, asks, sent.tag, length);
    const bool copies = length <= 1000 && happens(random(), 0.7);
    const auto outcome =
        side.port->send(*side.end, sent.tag, sent.bytes, copies, !copies && happens(random(), 0.2));
    using State = link::Outcome::State;
    sent.arrives = outcome.state == State::kDone;
    sent.pending = outcome.state == State::kPending;
    if (outcome.state == State::kAgain || outcome.state == State::kFailed) side.sent.pop_back();
  }
  void leave(Side& side) {
    if (side.port == nullptr || side.end->left) return;
    hear_ends(side);
    // Copies behind messages that are taken back are lost.
    const bool pending = std::ranges::any_of(side.sent, &Side::Sent::pending);
    if (side.is_open() && !pending) side.left_at = world_.network.now;
    side.port->leave(*side.end);
  }
  void kill() {
    std::size_t place = up_to(random(), ports_.size() - 1);
    ConnectedPort* const port = std::exchange(ports_[place], nullptr);
    for (Talk& talk : talks_) {
      for (Side* side : {&talk.asks, &talk.answers}) {
        if (side->port != port) continue;
        side->killed = true;
        side->port = nullptr;
        side->end = nullptr;
      }
    }
    world_.kill(*port);
  }

  void judge() {
    for (std::size_t i = 0; i < talks_.size(); ++i) {
      hear_ends(talks_[i].asks);
      hear_ends(talks_[i].answers);
      judge(i, true, talks_[i].answers, talks_[i].asks);
      judge(i, false, talks_[i].asks, talks_[i].answers);
    }
    for (ConnectedPort* port : ports_) {
      if (port == nullptr) continue;
      for (const auto& each : port->messages)
        check(each.to != nullptr, "a message of no connection");
    }
  }
  // The peer has what was reported as sent.
  static void hear_ends(Side& side) {
    if (side.port == nullptr) return;
    for (Side::Sent& each : side.sent) {
      const auto found = each.pending ? side.port->sent.find(&each.bytes) : side.port->sent.end();
      if (found == side.port->sent.end()) continue;
      each.pending = false;
      each.arrives = found->second == 0;
      side.port->sent.erase(found);
    }
  }
  // What has come to one side is what the other has sent.
  void judge(std::size_t talk, bool asks, Side& to, const Side& from) {
    if (to.port == nullptr || to.judged) return;
    check(to.end->connects + to.end->failures <= 1, "an attempt ended twice");
    check(to.end->ends <= to.end->connects, "an end that was none");
    if (from.killed && !to.is_over()) return;
    std::uint64_t last = 0;
    std::set<std::uint64_t> whole;
    for (const auto& each : to.port->messages) {
      if (each.to != to.end) continue;
      check(each.tag == ++last, "messages came out of order");
      if (each.error != 0) continue;
      check(each.bytes == content(talk, asks, each.tag, each.bytes.size()), "other bytes came");
      whole.insert(each.tag);
    }
    to.judged = to.end->ends != 0;
    const bool orderly = to.end->ends != 0 && from.end != nullptr && from.end->left &&
                         from.left_at != os::Time{} && !to.end->left;
    if (!orderly || world_.network.now - from.left_at >= seconds(2)) return;
    for (const Side::Sent& each : from.sent) {
      check(!each.arrives || whole.contains(each.tag), "a message is lost that was sent");
    }
  }
  // When one side knows that it is over, the other knows it, too.
  void agree(const Talk& talk) {
    if (talk.answers.port == nullptr && !talk.answers.killed) {
      return check(talk.asks.is_over(), talk.asks.end == nullptr || talk.asks.end->connects == 0
                                            ? "an attempt has no end"
                                            : "a connection has one end");
    }
    const std::string states =
        std::to_string(talk.asks.is_over()) + std::to_string(talk.answers.is_over());
    check(talk.asks.is_over() == talk.answers.is_over(), "both ends do not agree: " + states);
    if (talk.asks.is_over()) return;
    check(talk.asks.end->is_open() && talk.answers.end->is_open(), "neither open nor over");
    for (const Side* side : {&talk.asks, &talk.answers}) {
      for (const Side::Sent& each : side->sent) check(!each.pending, "a message has no end");
    }
  }

  static constexpr std::size_t kMost = 40;

  const Scenario scenario_;
  Options device_;
  std::deque<Talk> talks_;  // outlive the ports, whose flows use their bytes
  ConnectedWorld world_;
  std::vector<ConnectedPort*> ports_;  // null: killed
  std::string wrong_;
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kRuns = 4;  // each takes 20 times as long
#else
constexpr std::uint64_t kRuns = 100;  // each takes 20 milliseconds
#endif

struct ConnectionSimulations : ::testing::TestWithParam<unsigned> {};

TEST_P(ConnectionSimulations, BothEndsAgreeAndNothingIsLeft) {
  const SimulatorSeeds seeds = SimulatorSeeds::of(GetParam(), kRuns);
  for (std::uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
    const Scenario scenario = Scenario::draw(seed);
    ASSERT_EQ(ConnectionSimulation(scenario).run(), "") << scenario.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ConnectionSimulations, ::testing::Range(0U, 4U));

}  // namespace
}  // namespace weft::rdm::testing
