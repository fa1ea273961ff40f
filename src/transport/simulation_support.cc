// SPDX-License-Identifier: BSD-2-Clause
// How do devices live through a scenario, on a clock of their own?
#include "simulator.h"

#include <random>
#include <sstream>

#include "simulator_device.h"
#include "simulator_network.h"

namespace weft::transport::testing {
namespace {

// Between which devices a packet goes. A device that sends itself no bytes looks what is due.
struct BetweenDevices {
  unsigned from = 0;
  unsigned to = 0;
};
using Network = SimulatedNetwork<BetweenDevices>;

constexpr unsigned kPacketsAtOnce = 8;
constexpr Duration kTurn = std::chrono::microseconds(2);  // of a device that polls

class Simulation {
 public:
  explicit Simulation(const Scenario& scenario)
      : scenario_(scenario),
        network_(scenario.weather, scenario.seed),
        looks_(scenario.devices, Time::max()) {
    const unsigned n = scenario.devices;
    ends_.resize(std::size_t{n} * n);
    for (unsigned from = 0; from < n; ++from) {
      for (unsigned to = from + 1; to < n; ++to) connect(from, to);
      look(from, now_);
    }
  }

  Outcome run() {
    const Time limit = now_ + scenario_.enough;
    while (network_.next() != Time::max() && now_ < limit && outcome_.wrong.empty() && !over()) {
      const Network::Parcel next = network_.take();
      now_ = next.when;
      happen(next);
    }
    outcome_.took = now_.time_since_epoch();
    const bool over_in_time = over();
    each_end([&](FlowEnd& end) {
      if (over_in_time) end.judge();
      end.count(outcome_);
      if (outcome_.wrong.empty()) outcome_.wrong = end.wrong();
    });
    if (!over_in_time && outcome_.wrong.empty()) outcome_.wrong = "work has not ended";
    return outcome_;
  }

 private:
  void connect(unsigned from, unsigned to) {
    Settings there = scenario_.settings;
    Settings back = scenario_.settings;
    there.first_sent = back.first_expected = Psn(static_cast<std::uint32_t>(random_()));
    there.first_expected = back.first_sent =
        happens(random_, 0.5) ? Psn(0).after(-20) : Psn(static_cast<std::uint32_t>(random_()));
    const unsigned n = scenario_.devices;
    const unsigned forth = from * n + to;
    const unsigned back_again = to * n + from;
    ends_[forth] = std::make_unique<FlowEnd>(scenario_, forth, back_again, there);
    ends_[back_again] = std::make_unique<FlowEnd>(scenario_, back_again, forth, back);
    ends_[forth]->meet(*ends_[back_again]);
    ends_[back_again]->meet(*ends_[forth]);
  }

  template <class Do>
  void each_end(Do what) {
    for (auto& end : ends_) {
      if (end != nullptr) what(*end);
    }
  }

  bool over() {
    bool all = true;
    each_end([&](FlowEnd& end) { all = all && end.over(); });
    return all;
  }

  void look(unsigned device, Time when) {
    if (when >= looks_[device]) return;
    looks_[device] = when;
    network_.put(when, {device, device}, {});
  }

  void happen(const Network::Parcel& what) {
    if (!what.bytes.empty()) {
      arrive(what);
      return look(what.to, now_);
    }
    if (looks_[what.to] != now_) return;  // it has looked already
    looks_[what.to] = Time::max();
    take_turn(what.to);
  }

  void arrive(const Network::Parcel& what) {
    if (!intact(route(what.from, what.to), what.bytes)) return;
    wire::Packet packet;
    if (wire::parse(what.bytes, packet) != wire::Malformed::kNone) {
      outcome_.wrong = "a malformed packet was sent";
      return;
    }
    ends_[what.to * scenario_.devices + what.from]->take(packet, now_);
  }

  void take_turn(unsigned device) {
    Time next = Time::max();
    for (unsigned peer = 0; peer < scenario_.devices; ++peer) {
      FlowEnd* end = ends_[device * scenario_.devices + peer].get();
      if (end == nullptr) continue;
      if (end->deadline() <= now_) end->tick(now_);
      end->work();
      Bytes packet(wire::kMaxHeaderBytes + wire::kMaxReliableDatagramMtu + wire::kIcrcBytes);
      unsigned sent = 0;
      for (; sent < kPacketsAtOnce; ++sent) {
        const std::size_t length = end->next(now_, packet);
        if (length == 0) break;
        send(device, peer, {packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(length)});
      }
      next = std::min(next, sent == kPacketsAtOnce ? now_ + kTurn : end->deadline());
    }
    if (next != Time::max()) look(device, std::max(next, now_ + kTurn));
  }

  void send(unsigned from, unsigned to, Bytes packet) {
    network_.carry({from, to}, sealed(route(from, to), std::move(packet)));
  }

  const Scenario& scenario_;
  Network network_;
  Time& now_ = network_.now;
  Random& random_ = network_.random();
  std::vector<Time> looks_;  // when each device will look next
  std::vector<std::unique_ptr<FlowEnd>> ends_;
  Outcome outcome_;
};

}  // namespace

Outcome run(const Scenario& scenario) { return Simulation(scenario).run(); }

Scenario Scenario::draw(std::uint64_t seed) {
  Random random(seed);
  Scenario drawn;
  drawn.seed = seed;
  const auto sometimes = [&](double most) {
    return happens(random, 0.6) ? std::uniform_real_distribution<>(0, most)(random) : 0;
  };
  drawn.devices = 2 + static_cast<unsigned>(happens(random, 0.2) ? up_to(random, 6) : 0);
  drawn.works = drawn.devices == 2 ? 60 : 15;
  drawn.weather.loss = sometimes(0.2);
  drawn.weather.burst = sometimes(0.5);
  drawn.weather.duplication = sometimes(0.1);
  drawn.weather.corruption = sometimes(0.05);
  drawn.weather.reordering = sometimes(0.2);
  drawn.not_ready = sometimes(0.2);
  drawn.fenced = sometimes(0.2);
  Settings& settings = drawn.settings;
  const bool datagrams = happens(random, 0.5);
  settings.kind = datagrams ? wire::Transport::kReliableDatagram
                            : static_cast<wire::Transport>(happens(random, 0.5) ? 0 : 5);
  settings.selective = happens(random, 0.6);
  if (datagrams) drawn.refused = sometimes(0.3);
  if (datagrams) drawn.gone = sometimes(0.3);
  settings.path_mtu = std::size_t{256} << up_to(random, 4);
  settings.max_reads = 1 + static_cast<unsigned>(up_to(random, 15));
  settings.max_reads_of_peer = settings.max_reads;
  settings.max_window = 1U << up_to(random, 9);
  settings.ack_timeout = std::chrono::milliseconds(5);
  settings.retries = 100;
  settings.rnr_timer = 4;
  if (settings.selective && happens(random, 0.3)) {
    settings.path_mtu = happens(random, 0.3) ? 2048 : 4096;
    drawn.weather.hole_from = std::chrono::microseconds(up_to(random, 3000));
  }
  if (datagrams) drawn.given_up = sometimes(0.05);
  return drawn;
}

std::string Scenario::text() const {
  std::ostringstream out;
  out << "seed " << seed << ": " << devices << " devices, " << works << " works each, kind "
      << static_cast<int>(settings.kind) << (settings.selective ? ", selective" : "")
      << ", path MTU " << settings.path_mtu << ", window " << settings.max_window << ", reads "
      << settings.max_reads << ", loss " << weather.loss << ", burst " << weather.burst
      << ", duplication " << weather.duplication << ", corruption " << weather.corruption
      << ", reordering " << weather.reordering << ", not ready " << not_ready << ", refused "
      << refused << ", gone " << gone << ", fenced " << fenced << ", given up " << given_up;
  if (weather.hole_from != Duration::max()) {
    out << ", a hole for packets of more than " << weather.hole << " bytes after "
        << weather.hole_from.count() << " ns";
  }
  return out.str();
}

}  // namespace weft::transport::testing
