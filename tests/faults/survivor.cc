// SPDX-License-Identifier: BSD-2-Clause
// In which order does the survivor meet its victims, and what must be left of them at the end?
#include "survivor.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>

#include "addressed_session.h"
#include "connected_session.h"
#include "failure.h"
#include "resources.h"
#include "session.h"
#include "switchboard.h"
#include "witness.h"

namespace weft::faults {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kBlockMilliseconds = 20'000;
constexpr unsigned kRoundSeconds = 100;
constexpr std::chrono::seconds kReleaseLimit{20};
constexpr double kLatestStreamKill = 8000.0;       // microseconds: long enough for queues to fill
constexpr std::uint32_t kLatestEarlyKill = 20000;  // about how long opening an endpoint may take
constexpr std::size_t kFilesPerProcess = 16;
constexpr std::uint64_t kStopRounds = 8;  // enough for every action and starter

class Survivor {
 public:
  Survivor(const KillPlan& plan, Channel fork_server, std::vector<Channel> channels)
      : plan_(plan),
        fork_server_(std::move(fork_server)),
        random_(plan.seed),
        memory_(channels.size() * kArenaBytes),
        slots_(channels.size()),
        node_(plan.type),
        switchboard_(node_) {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      slots_[i].index = static_cast<std::uint16_t>(i);
      slots_[i].channel = std::move(channels[i]);
      slots_[i].arena = Bytes(memory_).subspan(i * kArenaBytes, kArenaBytes);
    }
  }

  void run(const Channel& witness) {
    warm_up();
    const Resources before = held_by_this_process(plan_.runtime_directory);
    open(witness);
    const Resources ready = held_by_this_process(plan_.runtime_directory);
    while (tally_.kills < plan_.kills) play_round();
    settle();
    // A peer that is just dying may be looked for on the network, and the first peer that is met
    // there brings the thread in the background. The first atomic operation opens the stripes. The
    // slots to and from the witness get their bulk rings and more rendezvous when they are needed.
    Resources served = ready;
    if (provider_is_weft()) {
      constexpr std::size_t kSlotsOfWitness = 2;
      constexpr std::size_t kPartsLater = 2;
      ++served.threads;
      ++served.descriptors;
      served.mappings += 1 + kSlotsOfWitness * kPartsLater;
    }
    require_released(served, "with all victims dead");
    report();
    close();
    require_released(before, "with everything closed");
  }

 private:
  // The libraries keep some things for a process's whole life, from the first use on.
  void warm_up() {
    Node node(plan_.type);
    if (node.open(0) != 0) fail(std::string(node.failed_call()) + " of the survivor");
    Switchboard switchboard(node);
    if (node.connects()) require_ok(switchboard.open(), switchboard.failed_call());
    switchboard.close();
  }

  void open(const Channel& witness) {
    if (node_.open(0) != 0) fail(std::string(node_.failed_call()) + " of the survivor");
    require_ok(node_.register_memory(memory_, kArenaKey, region_), "fi_mr_reg of the survivor");
    node_.on_data(
        [](void* self, std::uint64_t data) { static_cast<Survivor*>(self)->on_data(data); }, this);
    if (node_.connects()) {
      require_ok(switchboard_.open(), switchboard_.failed_call());
    } else {
      for (const Inbox::Kind& kind : {plain_receives(16), packed_receives()}) open_inbox(kind);
    }
    meet(witness);
    turn_until([&] { return witness_->answered() >= 20; });
    node_.wait(1);  // asleep once: what the library needs to sleep is part of the start
  }

  void open_inbox(const Inbox::Kind& kind) {
    untagged_.push_back(std::make_unique<Inbox>(
        node_.endpoint(), kind, [](ConstBytes, std::uint64_t) {},
        [this](int error, const std::string&) { on_receive_error(error); }));
  }

  void meet(const Channel& witness) {
    Address address{};
    require(witness.receive(&address, sizeof address), "the witness did not start");
    if (!node_.connects()) {
      witness.send(&node_.address(), sizeof(Address));
      witness_ = std::make_unique<WitnessLink>(node_.endpoint(), node_.insert(address), plan_.seed);
      return;
    }
    witness.send(&switchboard_.address(), sizeof(Address));
    turn_until([&] { return connected_to_witness_; });
    witness_ = std::make_unique<WitnessLink>(to_witness_.get(), 0, plan_.seed);
  }

  void hear_events() {
    while (std::optional<ConnectionEvent> event = switchboard_.read()) {
      bool known = hear_of_witness(*event);
      for (const auto& one : sessions_) known = known || one->on_event(*event);
      if (known) continue;
      require(event->what == FI_CONNREQ, "an event of an unknown connection");
      require_ok(switchboard_.reject(*event), "fi_reject of a request whose author is dead");
    }
  }

  bool hear_of_witness(const ConnectionEvent& event) {
    if (event.what == FI_CONNREQ && event.id == kWitnessId) {
      require_ok(switchboard_.open_endpoint(event.request.get(), to_witness_),
                 switchboard_.failed_call());
      require_ok(switchboard_.accept(*to_witness_), "fi_accept of the witness");
      return true;
    }
    if (!to_witness_ || event.endpoint != &to_witness_->fid) return false;
    require(event.what == FI_CONNECTED, "the connection to the witness ended");
    connected_to_witness_ = true;
    return true;
  }

  Order next_order(std::size_t slot, bool stopped) {
    const std::uint64_t number = next_id_++;
    Order order;
    order.id = number;
    order.seed = random_();
    order.survivor = node_.connects() ? switchboard_.address() : node_.address();
    order.survivor_base = slot * kArenaBytes;
    order.slot = static_cast<std::uint16_t>(slot);
    order.port = slots_[slot].port;
    order.connected = node_.connects();
    order.asks = order.connected && random_() % 2 == 0;
    order.stopped = stopped;
    const std::uint64_t kind = stopped ? next_stopped_++ : number / kActions.size();
    order.action = kActions.at((stopped ? kind : number) % kActions.size());
    order.starter = kStarters.at(kind % kStarters.size());
    order.early = !stopped && (order.connected || order.port != 0) && random_() % 8 == 0;
    order.blocking = random_() % 3 == 0;
    const double share = static_cast<double>(random_() % 10000) / 10000.0;
    order.kill_after_us = order.early
                              ? static_cast<std::uint32_t>(share * kLatestEarlyKill)
                              : static_cast<std::uint32_t>(std::pow(kLatestStreamKill, share));
    return order;
  }

  // Up to one victim in each slot at a time; over when the last of them is dead and done with.
  void play_round() {
    const bool stopped = tally_.kills * kStopRounds >= next_stop_round_ * plan_.kills;
    if (stopped) ++next_stop_round_;
    const std::size_t together = std::min<std::uint64_t>(
        stopped ? slots_.size() : 1 + random_() % slots_.size(), plan_.kills - tally_.kills);
    blocking_ = !stopped && random_() % 3 == 0;
    const Watchdog watchdog("a round from victim " + std::to_string(next_id_) + " on, " +
                                std::to_string(together) + " at once" +
                                (blocking_ ? ", survivor blocking" : ""),
                            kRoundSeconds);
    for (std::size_t slot = 0; slot < together; ++slot) {
      sessions_.push_back(
          session({node_, fork_server_, slots_[slot], next_order(slot, stopped), tally_}));
    }
    turn_until([&] { return all([](const Session& one) { return one.over(); }); });
    sessions_.clear();
    const std::uint64_t answered = witness_->answered();
    turn_until([&] { return witness_->answered() >= answered + 2; });
    const std::size_t files = files_below(plan_.runtime_directory);
    require(files <= kFilesPerProcess * (2 + 2 * slots_.size()),
            std::to_string(files) + " files have gathered in the runtime directory");
  }

  std::unique_ptr<Session> session(const Setting& setting) {
    if (!node_.connects()) {
      return std::make_unique<AddressedSession>(setting, random_() % 2 == 0);
    }
    return std::make_unique<ConnectedSession>(setting, switchboard_, random_() % 8 == 0);
  }

  template <class Condition>
  bool all(Condition condition) const {
    for (const auto& one : sessions_) {
      if (!condition(*one)) return false;
    }
    return true;
  }

  template <class Condition>
  void turn_until(Condition condition) {
    while (!condition()) turn();
  }

  void turn() {
    if (node_.connects()) hear_events();
    for (const auto& one : sessions_) one->step();
    const bool may_block = blocking_ && !sessions_.empty() &&
                           all([](const Session& one) { return one.waits_for_completions(); }) &&
                           !all([](const Session& one) { return one.over(); });
    if (witness_) witness_->step(may_block);
    if (may_block && witness_->idle()) return block();
    if (node_.poll() == 0) sched_yield();
  }

  // Everything that is awaited is pending toward peers that are dead or will be in milliseconds.
  void block() {
    const auto begin = Clock::now();
    if (node_.wait(kBlockMilliseconds) != 0) return;
    if (Clock::now() - begin < std::chrono::milliseconds(kBlockMilliseconds - 100)) return;
    std::string text = "fi_cq_sread slept over the deaths of its peers";
    for (const auto& one : sessions_) text += "\n  " + one->describe();
    fail(text);
  }

  void on_data(std::uint64_t data) {
    for (const auto& one : sessions_) {
      if (one->id() == data >> 32) return one->on_data(data & 0xffffffff);
    }
  }

  void on_receive_error(int error) {
    ++tally_.errors[error];
    if (provider_is_weft() && error != FI_ECONNRESET)
      fail("a receive from any source failed with " + error_text(error));
  }

  // Gives back all that was held for victims; the witness stays.
  void settle() {
    for (Slot& slot : slots_) {
      if (slot.address != FI_ADDR_UNSPEC) node_.remove(slot.address);
    }
  }

  void require_released(const Resources& wanted, const std::string& when) {
    const auto begin = Clock::now();
    Resources held = held_by_this_process(plan_.runtime_directory);
    while (held.descriptors > wanted.descriptors || held.threads > wanted.threads ||
           held.mappings > wanted.mappings) {
      if (Clock::now() - begin > kReleaseLimit) {
        fail(when + " the survivor holds " + describe(held) + "; before: " + describe(wanted) +
             "\n" + descriptors_of_this_process());
      }
      if (witness_) {
        turn();
        node_.wait(1);
      }
      held = held_by_this_process(plan_.runtime_directory);
    }
  }

  void report() {
    std::printf(
        "%llu kills, %llu with operations pending, %llu after standing still; %llu operations of "
        "the "
        "survivor completed\n"
        "slowest end of a pending operation after a death: %lld ms; greetings sent again: %llu; "
        "answers of the "
        "witness: %llu\n",
        static_cast<unsigned long long>(tally_.kills),
        static_cast<unsigned long long>(tally_.with_pending),
        static_cast<unsigned long long>(tally_.stops),
        static_cast<unsigned long long>(tally_.completed),
        static_cast<long long>(tally_.slowest.count()),
        static_cast<unsigned long long>(tally_.greetings_lost),
        static_cast<unsigned long long>(witness_->answered()));
    for (const auto& [error, count] : tally_.errors) {
      std::printf("  %llu x %s\n", static_cast<unsigned long long>(count),
                  error_text(error).c_str());
    }
    std::fflush(stdout);
  }

  void close() {
    const Watchdog watchdog("closing everything", kRoundSeconds);
    for (const auto& inbox : untagged_) {
      inbox->cancel();
      while (inbox->pending() > 0) node_.poll();
    }
    while (!witness_->idle()) {
      witness_->step(true);
      node_.poll();
    }
    to_witness_.reset();
    switchboard_.close();
    region_.reset();
    node_.close();
    untagged_.clear();
    witness_.reset();
  }

  const KillPlan& plan_;
  ForkServer fork_server_;
  std::mt19937_64 random_;
  std::vector<std::uint8_t> memory_;
  std::vector<Slot> slots_;
  Node node_;
  Switchboard switchboard_;
  Owned<fid_mr> region_;
  Owned<fid_ep> to_witness_;
  bool connected_to_witness_ = false;
  std::vector<std::unique_ptr<Inbox>> untagged_;
  std::unique_ptr<WitnessLink> witness_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::uint64_t next_id_ = 1;
  std::uint64_t next_stopped_ = 0;
  std::uint64_t next_stop_round_ = 0;
  bool blocking_ = false;
  Tally tally_;
};

}  // namespace

int live_as_survivor(const KillPlan& plan, Channel fork_server, std::vector<Channel> slots,
                     Channel witness) {
  name_this_process("survivor");
  Survivor(plan, std::move(fork_server), std::move(slots)).run(witness);
  return kPassed;
}

}  // namespace weft::faults
