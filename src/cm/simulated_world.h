// SPDX-License-Identifier: BSD-2-Clause
// Processes that connect to each other over a network, until a given time.
#pragma once

#include <memory>
#include <sstream>
#include <vector>

#include "simulated_user.h"

namespace weft::cm::testing {

struct Scenario {
  std::uint64_t seed = 0;
  unsigned processes = 2;
  unsigned hosts = kMostHosts;
  bool relays = false;  // of each host
  unsigned calls = 20;  // of each process
  nanoseconds period = seconds(1);
  Weather weather;
  double full = 0;
  double mailboxes = 0;  // of pairs of processes: speak through mailboxes
  Habits habits;
  RepeatTimes repeats;
  AgentOptions agents;
  int ends = -1;  // a process that ends, and when
  nanoseconds ends_at{};
  nanoseconds restarts_after = nanoseconds::max();  // another one at its address
  bool end_is_reported = false;                     // by the network, to senders: nothing receives
  unsigned forgeries = 0;                           // messages of an off-path attacker

  static Scenario draw(std::uint64_t seed) {
    Scenario drawn = draw_simple(seed);
    Random random(~seed);
    if (happens(random, 0.5)) drawn.draw_handovers(random);
    return drawn;
  }
  // With a process on each host.
  static Scenario draw_simple(std::uint64_t seed) {
    Random random(seed);
    Scenario drawn;
    drawn.seed = seed;
    drawn.processes = static_cast<unsigned>(happens(random, 0.7) ? 2 : 3 + up_to(random, 5));
    drawn.calls = static_cast<unsigned>(3 + up_to(random, 80 / drawn.processes));
    drawn.period = happens(random, 0.5) ? milliseconds(20) : seconds(3);
    drawn.mailboxes = happens(random, 0.3) ? 0.5 : 0;
    drawn.habits.longest_pause = happens(random, 0.8) ? milliseconds(20) : seconds(20);
    drawn.habits.ignores = happens(random, 0.3) ? 0.1 : 0;
    drawn.habits.at_once = happens(random, 0.5) ? 0.9 : 0.2;
    drawn.habits.ends = happens(random, 0.7) ? 0.15 : 0;
    drawn.repeats.limit = happens(random, 0.5) ? milliseconds(500) : seconds(30);
    drawn.habits.lies = happens(random, 0.2) ? 0.2 : 0;
    drawn.agents.watch.probe_after = happens(random, 0.5) ? milliseconds(500) : seconds(2);
    drawn.agents.peer_timeout = happens(random, 0.5) ? seconds(5) : seconds(60);
    drawn.agents.packets.undecided_limit = happens(random, 0.5) ? seconds(2) : seconds(30);
    if (happens(random, 0.2)) return drawn;
    if (happens(random, 0.3)) drawn.forgeries = static_cast<unsigned>(up_to(random, 200));
    if (happens(random, 0.3)) return drawn;
    drawn.draw_weather(random);
    if (happens(random, 0.3)) drawn.draw_end(random);
    return drawn;
  }
  // Nothing gets lost.
  bool lossless() const {
    return weather.loss + weather.corruption + full == 0 && weather.cut_until == nanoseconds{};
  }
  std::string text() const {
    std::ostringstream out;
    out << "WEFT_SIMULATOR_SEED=" << seed << " WEFT_SIMULATOR_RUNS=1: " << processes
        << " processes on " << hosts << " hosts " << (relays ? "with" : "without")
        << " relays, handovers " << habits.hands_over << ", " << calls << " calls within "
        << period.count() << " ns, loss " << weather.loss << ", burst " << weather.burst
        << ", duplication " << weather.duplication << ", corruption " << weather.corruption
        << ", reordering " << weather.reordering << " up to " << weather.late.count()
        << " ns, full " << full << ", cut " << weather.cut_from.count() << " to "
        << weather.cut_until.count() << " ns, " << forgeries << " forgeries";
    if (ends >= 0) {
      out << ", process " << ends << " ends after " << ends_at.count() << " ns"
          << (end_is_reported ? ", reported" : "");
      if (restarts_after != nanoseconds::max()) {
        out << ", another begins " << restarts_after.count() << " ns later";
      }
    }
    return out.str();
  }

 private:
  void draw_weather(Random& random) {
    const auto sometimes = [&](double most) {
      return happens(random, 0.5) ? std::uniform_real_distribution<>(0, most)(random) : 0;
    };
    weather.loss = sometimes(0.3);
    weather.burst = sometimes(0.5);
    weather.duplication = sometimes(0.3);
    weather.corruption = sometimes(0.05);
    weather.reordering = sometimes(0.3);
    // Shorter than the time that an id rests.
    weather.late = happens(random, 0.5) ? microseconds(200) : milliseconds(30);
    full = sometimes(0.1);
    if (happens(random, 0.25)) {
      weather.cut_from = nanoseconds(up_to(random, static_cast<std::uint64_t>(period.count())));
      weather.cut_until = weather.cut_from + milliseconds(up_to(random, 10'000));
    }
  }
  void draw_handovers(Random& random) {
    hosts = static_cast<unsigned>(1 + up_to(random, 1));
    processes = std::max(processes, hosts + 1);
    relays = happens(random, 0.5);
    habits.hands_over = happens(random, 0.5) ? 0.9 : 0.3;
    habits.two_places = happens(random, 0.7) ? 0.5 : 0;
    habits.other_after = happens(random, 0.5) ? milliseconds(1) : milliseconds(100);
    if (happens(random, 0.5)) end_is_reported = true;
  }
  void draw_end(Random& random) {
    ends = static_cast<int>(up_to(random, processes - 1));
    ends_at = nanoseconds(up_to(random, static_cast<std::uint64_t>(period.count())));
    end_is_reported = happens(random, 0.5);
    if (happens(random, 0.6)) restarts_after = microseconds(up_to(random, 100'000));
  }
};

class World {
 public:
  explicit World(const Scenario& scenario)
      : scenario_(scenario), network_(scenario.weather, scenario.full, scenario.seed) {
    for (Carrier& carrier : shared_.carriers) {
      if (shared_.maybe(scenario.mailboxes)) carrier = Carrier::kMailbox;
    }
    for (unsigned i = 0; i < scenario.processes; ++i) {
      processes_.emplace_back();
      begin(i);
    }
    ledger_.forged = scenario.forgeries != 0;
    ledger_.calm = scenario.lossless() && scenario.ends < 0 && scenario.forgeries == 0;
    if (scenario.lossless()) ledger_.trusted_from = Time{};
  }

  // A process begins at the address of that number.
  Process& begin(unsigned number) {
    AgentOptions options = scenario_.agents;
    options.guid = network_.random()();
    ledger_.begun.resize(scenario_.processes, Time::max());
    ledger_.begun[number] = network_.now;
    processes_[number] = std::make_unique<Process>(shared_, number, lives_++, options);
    return *processes_[number];
  }
  void end(unsigned number) {
    processes_[number].reset();
    ledger_.begun[number] = Time::max();
  }
  // Goes on until that time, or until something is wrong.
  void go_on_until(Time limit) {
    while (ledger_.wrong().empty()) {
      Process* first = nullptr;
      const Time action = actions_.empty() ? Time::max() : actions_.begin()->first;
      Time at = std::min(action, network_.next());
      for (const auto& process : processes_) {
        if (process == nullptr || process->next() >= at) continue;
        first = process.get();
        at = first->next();
      }
      if (at > limit || at == Time::max()) break;
      ledger_.check(++steps_ < kMostSteps, "messages without end");
      network_.now = std::max(network_.now, at);
      if (first != nullptr) {
        first->turn();
      } else if (at == action) {
        const auto due = std::move(actions_.begin()->second);
        actions_.erase(actions_.begin());
        due();
      } else {
        deliver(network_.take());
      }
    }
    network_.now = std::max(network_.now, limit);
  }
  // Calls that, so long after now.
  void at(nanoseconds pause, std::function<void()> action) {
    actions_.emplace(network_.now + pause, std::move(action));
  }
  void go_on_for(nanoseconds time) { go_on_until(network_.now + time); }
  // Ends everything; nothing may be left.
  void close() {
    for (const auto& process : processes_) {
      if (process != nullptr) process->close();
    }
    const bool forwards = scenario_.habits.hands_over != 0;
    go_on_for(seconds(10) + 2 * scenario_.agents.watch.probe_after +
              (forwards ? scenario_.agents.packets.undecided_limit : seconds(0)));
    for (const auto& process : processes_) {
      if (process != nullptr && ledger_.wrong().empty()) process->check_quiet();
    }
  }

  Network& network() { return network_; }
  Ledger& ledger() { return ledger_; }
  Shared& shared() { return shared_; }
  // Null when it has ended.
  Process* process(unsigned number) { return processes_[number].get(); }
  unsigned processes() const { return scenario_.processes; }

 private:
  static constexpr std::uint64_t kMostSteps = 2'000'000;

  void deliver(Parcel parcel) {
    const bool is_relayed = scenario_.relays && parcel.to.address.port() == kRelayPort;
    if (is_relayed && !relay(parcel)) return;
    if (Process* const to = process_at(parcel.to)) return to->arrive(parcel);
    // The attacker's hosts are silent.
    if (!scenario_.end_is_reported || is_relayed || parcel.to.address.port() >= 50'000) return;
    if (Process* const from = process_at(parcel.from)) from->report_unreachable(parcel.to);
  }
  // Each service of the system is one of a port. Those of the simulation are not: its relay looks
  // for the process that was asked.
  bool relay(Parcel& parcel) {
    const auto mad = wire::parse_cm(std::span(parcel.bytes).first(wire::kMadBytes));
    const auto* const req = std::get_if<wire::CmReq>(&mad->message);
    const End* const end =
        req != nullptr ? ledger_.find(read_letter(Letter::kReq, req->data)) : nullptr;
    if (end != nullptr) parcel.to = end->asked;
    return end != nullptr;
  }
  // Null when it has ended.
  Process* process_at(const Remote& place) {
    const auto number = static_cast<unsigned>(place.address.port() - 40'000);
    return number < processes_.size() ? process(number) : nullptr;
  }

  const Scenario scenario_;
  Network network_;
  Ledger ledger_;
  Shared shared_{network_,
                 ledger_,
                 scenario_.habits,
                 scenario_.processes,
                 std::vector<Carrier>(scenario_.processes* scenario_.processes),
                 scenario_.repeats,
                 scenario_.hosts,
                 [this](unsigned number) { return process(number); }};
  std::vector<std::unique_ptr<Process>> processes_;
  std::multimap<Time, std::function<void()>> actions_;
  unsigned lives_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace weft::cm::testing
