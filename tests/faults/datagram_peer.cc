// SPDX-License-Identifier: BSD-2-Clause
// Do datagrams to others go on when a peer is killed, and is its successor found?
//
// A survivor pings a witness, which lives to the end, and one victim after the other, each of which
// has its predecessor's address. All echo what they hear.
#include <sched.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <thread>

#include "failure.h"
#include "fork_server.h"
#include "node.h"
#include "process.h"
#include "resources.h"
#include "tests.h"

namespace weft::faults {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kVictims = 40;
constexpr unsigned kSecondsOfPings = 100;
constexpr auto kPatience = std::chrono::seconds(20);
// No call may wait for a peer. A machine under load may take this much time now and then, but not
// for every victim.
constexpr auto kLongestCall = std::chrono::milliseconds(1500);
constexpr int kLongCalls = 5;

struct Ping {
  Address from{};
  std::uint64_t round = 0;
  std::array<std::uint8_t, 900> rest{};
};

// Keeps receives posted and hands over what they take.
class Listener final : public CompletionTarget {
 public:
  Listener(Node& node, std::function<void(const Ping&)> hear)
      : node_(node), hear_(std::move(hear)) {
    for (Place& place : places_) {
      place.operation.target = this;
      place.operation.memory = Bytes(reinterpret_cast<std::uint8_t*>(&place.ping), sizeof(Ping));
      post(place.operation);
    }
  }
  void completed(Operation& operation, const fi_cq_tagged_entry& entry) override {
    require(entry.len == sizeof(Ping), "a datagram of another length");
    Ping ping;
    std::memcpy(&ping, operation.memory.data(), sizeof ping);
    post(operation);
    hear_(ping);
  }
  void failed(Operation&, const fi_cq_err_entry& error) override {
    fail("receiving a datagram: " + error_text(error.err));
  }

 private:
  struct Place {
    Operation operation;
    Ping ping;
  };
  void post(Operation& operation) {
    operation.pending = true;
    require_ok(fi_recv(node_.endpoint(), operation.memory.data(), operation.memory.size(), nullptr,
                       FI_ADDR_UNSPEC, &operation.context),
               "fi_recv");
  }

  Node& node_;
  std::function<void(const Ping&)> hear_;
  std::array<Place, 32> places_;
};

void send(Node& node, fi_addr_t to, const Ping& ping) {
  const auto begin = Clock::now();
  require_ok(fi_inject(node.endpoint(), &ping, sizeof ping, to), "fi_inject of a datagram");
  static int long_calls = 0;
  if (Clock::now() - begin > kLongestCall) ++long_calls;
  require(long_calls < kLongCalls, "sending datagrams waited for their peers");
}

void open(Node& node, std::uint16_t port) {
  // The predecessor's port is free as soon as the kernel has taken its process apart.
  const auto end = Clock::now() + kPatience;
  int status = 0;
  while ((status = node.open(port)) == -FI_EADDRINUSE && Clock::now() < end) sched_yield();
  require_ok(status, node.failed_call());
}

// Echoes until the other end of the channel closes.
int live_as_echo(const Channel& channel, const char* name, std::uint16_t port) {
  name_this_process(name);
  Node node(FI_EP_DGRAM);
  open(node, port);
  fi_addr_t back = FI_ADDR_UNSPEC;
  const Listener listener(node, [&](const Ping& ping) {
    if (back == FI_ADDR_UNSPEC) back = node.insert(ping.from);
    Ping echo = ping;
    echo.from = node.address();
    send(node, back, echo);
  });
  channel.send(&node.address(), sizeof(Address));
  char end = 0;
  while (!channel.try_receive(&end, sizeof end)) {
    if (node.poll() == 0) sched_yield();
  }
  node.close();  // while there is still memory behind its receives
  return kPassed;
}

// What the survivor counts of one round.
struct Heard {
  std::uint64_t victim = 0;
  std::uint64_t witness = 0;
};

// Pings both until `done`.
void ping_both(Node& node, const fi_addr_t (&peers)[2], std::uint64_t round,
               const std::function<bool()>& done, const std::string& what) {
  Ping ping;
  ping.from = node.address();
  ping.round = round;
  const auto end = Clock::now() + kPatience;
  while (!done()) {
    require(Clock::now() < end, what + " took too long in round " + std::to_string(round));
    for (const fi_addr_t peer : peers) send(node, peer, ping);
    for (int i = 0; i < 20; ++i) node.poll();
    sched_yield();
  }
}

// The survivor: for each round waits until the victim and the witness are heard, says so, and goes
// on until the victim is dead and the witness was heard once more.
int live_as_survivor(const Channel& channel) {
  name_this_process("survivor");
  const Watchdog watchdog("pings to datagram peers that are killed", kSecondsOfPings);
  Address witness{};
  Address victim{};
  require(channel.receive(&witness, sizeof witness) && channel.receive(&victim, sizeof victim),
          "no addresses came");
  Node node(FI_EP_DGRAM);
  open(node, 0);
  const fi_addr_t peers[2] = {node.insert(victim), node.insert(witness)};
  std::uint64_t round = 0;
  Heard heard;
  const Listener listener(node, [&](const Ping& ping) {
    if (ping.round != round) return;
    ++(ping.from.sin_port == victim.sin_port ? heard.victim : heard.witness);
  });
  for (round = 1; round <= kVictims; ++round) {
    heard = {};
    ping_both(
        node, peers, round, [&] { return heard.victim > 0 && heard.witness > 0; }, "hearing");
    channel.send("", 1);
    char dead = 0;
    ping_both(
        node, peers, round, [&] { return channel.try_receive(&dead, 1); }, "the death");
    const std::uint64_t before = heard.witness;
    ping_both(
        node, peers, round, [&] { return heard.witness > before + 10; }, "the witness");
    channel.send("", 1);
  }
  node.close();
  return kPassed;
}

// One victim's life as the first process sees it; its end is a kill at any moment.
std::uint16_t kill_one(const Channel& survivor, std::uint16_t port, std::mt19937& random,
                       bool first) {
  Channel here;
  Channel there;
  Channel::make_pair(here, there);
  auto victim = std::make_unique<Process>("a victim", [&] {
    here.close();
    return live_as_echo(there, "victim", port);
  });
  there.close();
  Address address{};
  require(here.receive(&address, sizeof address), "a victim ended early");
  if (first) survivor.send(&address, sizeof address);
  char heard = 0;
  require(survivor.receive(&heard, 1), "the survivor ended early");
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
  victim.reset();
  survivor.send("", 1);
  require(survivor.receive(&heard, 1), "the survivor ended early");
  return ntohs(address.sin_port);
}

}  // namespace

int run_datagram_test() {
  const std::string directory = make_runtime_directory("datagrams");
  load_library();
  Channel witness_here, witness_there, survivor_here, survivor_there;
  Channel::make_pair(witness_here, witness_there);
  Channel::make_pair(survivor_here, survivor_there);
  const Process witness("the witness", [&] {
    for (Channel* end : {&witness_here, &survivor_here, &survivor_there}) end->close();
    return live_as_echo(witness_there, "witness", 0);
  });
  const Process survivor("the survivor", [&] {
    for (Channel* end : {&survivor_here, &witness_here}) end->close();
    return live_as_survivor(survivor_there);
  });
  survivor_there.close();
  Address address{};
  require(witness_here.receive(&address, sizeof address), "the witness ended early");
  survivor_here.send(&address, sizeof address);
  std::mt19937 random(std::random_device{}());
  std::uint16_t port = 0;
  for (int i = 0; i < kVictims; ++i) port = kill_one(survivor_here, port, random, i == 0);
  survivor.require_passed();
  witness_here.send("", 1);
  witness.require_passed();
  std::string left;
  const std::size_t files = files_below(directory, &left);
  require(files == 0, "files are left in the runtime directory:\n" + left);
  std::filesystem::remove_all(directory);
  std::printf("%d datagram peers killed, all others were served\n", kVictims);
  return kPassed;
}

}  // namespace weft::faults
