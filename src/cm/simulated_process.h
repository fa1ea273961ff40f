// SPDX-License-Identifier: BSD-2-Clause
// A process of a simulation: a connection manager, its users, and the network that it speaks over.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "simulated_ledger.h"

namespace weft::cm::testing {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// What users do how often, as probabilities.
struct Habits {
  double accepts = 0.8;   // a request, in the end; else they reject or disconnect
  double confirms = 0.9;  // a reply
  double delays = 0.2;    // a decision, by an MRA
  double ignores = 0;     // a request, without any decision
  double at_once = 0.6;   // decide while they handle the event
  double ends = 0.1;      // of random calls: end a connection
  double closes = 0.01;   // of random calls: end all
  double lies = 0;        // of random calls: report a living peer as unreachable
  double talks = 0.2;     // of random calls: send data
  double hands_over = 0;  // a request, to a process of the same host
  double two_places = 0;  // of requests: ask the relay of the host, too, or end when unreachable
  nanoseconds other_after = milliseconds(100);
  nanoseconds longest_pause = milliseconds(20);
};

class Process;
class SimulatedUser;

// Each process has its own host, up to so many.
inline constexpr unsigned kMostHosts = 8;

// What all processes of a simulation share.
struct Shared {
  Network& network;
  Ledger& ledger;
  Habits habits;
  unsigned processes = 2;
  std::vector<Carrier> carriers = std::vector<Carrier>(processes * processes, Carrier::kPackets);
  RepeatTimes repeats = {};
  unsigned hosts = kMostHosts;
  std::function<Process*(unsigned)> process = {};  // null when it has ended

  bool maybe(double probability) { return happens(network.random(), probability); }
  // A habit that most scenarios do not have costs them no random number.
  bool maybe_rare(double probability) { return probability != 0 && maybe(probability); }
  std::uint64_t below(std::uint64_t end) { return up_to(network.random(), end - 1); }
  os::SocketAddress address(unsigned number) const { return address_of_process(number, hosts); }
  // Where one process reaches another one, and how.
  Remote remote(unsigned from, unsigned to) const {
    return {address(to), carriers[std::min(from, to) * processes + std::max(from, to)]};
  }
};

class Process final : public CmHost {
 public:
  Process(Shared& shared, unsigned number, unsigned life, AgentOptions options);
  // The process ends without a word.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // CmHost:
  void send(const Remote& to, ConnectionId id, std::span<const std::byte> message) override;
  // The first number decides about the first id, which an earlier process at the address may have
  // had, too.
  std::uint64_t random() override {
    const std::uint64_t drawn = shared.network.random()();
    return agent_ == nullptr ? drawn % 4 : drawn;
  }

  Agent& agent() { return *agent_; }
  SimulatedUser& user(std::size_t user) { return *users_[user]; }
  SimulatedUser& any_user() { return *users_[shared.below(users_.size())]; }
  Time now() const { return shared.network.now; }
  os::SocketAddress address() const { return shared.address(number); }

  // When the process has something to do.
  Time next() const;
  void turn();
  void arrive(const Parcel& parcel);
  void report_unreachable(const Remote& peer);
  bool has_report(const Remote& peer, Time since) const;
  bool has_report_of_host(Remote peer, Time since) const;
  // Another process of its host, or null.
  Process* any_neighbour() const;
  // Random calls, `count` of them within `period`.
  void be_busy(unsigned count, nanoseconds period);
  // Ends everything, in one of the ways that there are.
  void close();
  // Nothing may be left.
  void check_quiet();

  // For its users:
  void check(bool holds, const std::string& otherwise);
  void after(nanoseconds pause, std::function<void()> action);
  // Messages may go to that address.
  void know(const Remote& peer);
  void enter(End& end, ConnectionId id);
  void leave(End& end);
  // The end of that id, or null.
  End* find(ConnectionId id) const;
  // Any end that suits, or null.
  template <class Suits>
  End* any_end(Suits suits) {
    std::vector<End*> found;
    for (const auto& [id, end] : live_) {
      if (suits(*end)) found.push_back(end);
    }
    return found.empty() ? nullptr : found[shared.below(found.size())];
  }
  // Delivers all events.
  void settle();

  const unsigned number;
  const unsigned life;  // differs from that of every other process that there was
  const std::uint64_t guid;
  const nanoseconds undecided_limit;
  Shared& shared;
  Stats stats;

 private:
  void take_data(const Parcel& parcel);
  bool answers_forwarded(const wire::CmMad& mad);

  std::unique_ptr<Agent> agent_;
  std::vector<std::unique_ptr<SimulatedUser>> users_;
  std::map<ConnectionId, End*> live_;
  std::multimap<Time, std::function<void()>> actions_;
  std::vector<Remote> known_;
  std::vector<std::pair<Remote, Time>> reports_;  // of unreachable addresses
  bool dead_ = false;
};

}  // namespace weft::cm::testing
