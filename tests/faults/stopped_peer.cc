// SPDX-License-Identifier: BSD-2-Clause
// Is a peer that stands still for longer than a death is noticed taken for dead, or does all arrive
// when it goes on?
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>

#include "failure.h"
#include "fork_server.h"
#include "inbox.h"
#include "node.h"
#include "resources.h"
#include "talk.h"
#include "tests.h"

namespace weft::faults {

namespace {

using Stops = std::vector<std::chrono::milliseconds>;

constexpr std::uint64_t kMessages = 20000;
constexpr unsigned kSecondsOfStops = 90;
constexpr std::size_t kWindow = 64;

// Sends kMessages to the other side, of all sizes, and takes as many from it, each once.
class Talker final : public CompletionTarget {
 public:
  Talker(const Talk& talk, std::uint64_t own_id, std::uint64_t peer_id)
      : node_(talk.node()),
        endpoint_(talk.endpoint()),
        peer_(talk.peer()),
        own_id_(own_id),
        random_(own_id),
        inbox_(
            endpoint_, {true, tag_of(peer_id, Use::kStream), peer_, 16, kLargest, true},
            [this](ConstBytes message, std::uint64_t) { receive(message); },
            [](int error, const std::string& what) { fail(what + ": " + error_text(error)); }) {
    memory_.resize(kWindow * kLargest);
    for (std::size_t i = 0; i < kWindow; ++i) {
      operations_.push_back(std::make_unique<Operation>());
      operations_.back()->target = this;
      operations_.back()->memory = Bytes(memory_).subspan(i * kLargest, kLargest);
      free_.push_back(operations_.back().get());
    }
  }

  bool step() {
    if (sent_ < kMessages && !free_.empty()) send();
    if (node_.poll() == 0) sched_yield();
    return sent_ < kMessages || free_.size() < kWindow || received_ < kMessages;
  }
  std::uint64_t progress() const { return sent_ + received_; }
  void finish() {
    inbox_.cancel();
    while (inbox_.pending() > 0) node_.poll();
  }

  void completed(Operation& operation, const fi_cq_tagged_entry&) override {
    free_.push_back(&operation);
  }
  void failed(Operation&, const fi_cq_err_entry& error) override {
    fail("sending to a peer that is only stopped: " + error_text(error.err));
  }

 private:
  static constexpr std::size_t kLargest = 200000;

  void send() {
    Operation& operation = *free_.back();
    const std::size_t bytes = sent_ % 50 == 0 ? kLargest : kSmallestPayload + random_() % 2000;
    write_payload(operation.memory.first(bytes), own_id_, sent_);
    const long status = fi_tsend(endpoint_, operation.memory.data(), bytes, nullptr, peer_,
                                 tag_of(own_id_, Use::kStream), &operation.context);
    if (status == -FI_EAGAIN) return;
    require_ok(status, "fi_tsend");
    free_.pop_back();
    operation.pending = true;
    ++sent_;
  }

  void receive(ConstBytes message) {
    // Messages are matched in order; a long one may be complete after shorter ones that were sent
    // later.
    PayloadHeader header{};
    read_payload(message, header);
    require(header.sequence < kMessages && !seen_.at(header.sequence),
            "message " + std::to_string(header.sequence) + " came twice");
    seen_.at(header.sequence) = true;
    ++received_;
  }

  Node& node_;
  fid_ep* endpoint_;
  fi_addr_t peer_;
  std::uint64_t own_id_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Operation>> operations_;
  std::vector<Operation*> free_;
  std::vector<std::uint8_t> memory_;
  std::vector<bool> seen_ = std::vector<bool>(kMessages);
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
  Inbox inbox_;
};

int live_as_stopped(const Channel& channel, fi_ep_type type) {
  name_this_process("stopped process");
  Talk talk(type, channel, true);
  Talker talker(talk, 2, 1);
  while (talker.step()) {
  }
  // The other side may still need our completions: go on until it says that it has all.
  channel.send("", 1);
  char end = 0;
  while (!channel.try_receive(&end, sizeof end)) talk.node().poll();
  talker.finish();
  channel.send("", 1);
  return kPassed;
}

void stop_now_and_then(pid_t process, const Talker& talker, const Stops& stops, std::size_t& done,
                       std::chrono::steady_clock::time_point& go_on_at) {
  const auto now = std::chrono::steady_clock::now();
  if (go_on_at != std::chrono::steady_clock::time_point{}) {
    if (now < go_on_at) return;
    kill(process, SIGCONT);
    go_on_at = {};
  } else if (done < stops.size() && talker.progress() > (done + 1) * kMessages / 4) {
    kill(process, SIGSTOP);
    go_on_at = now + stops[done++];
  }
}

int run(fi_ep_type type, const std::string& name, const Stops& stops) {
  const std::string directory = make_runtime_directory(name);
  const Watchdog watchdog("messages with a process that is stopped now and then", kSecondsOfStops);
  Channel here;
  Channel there;
  Channel::make_pair(here, there);
  const pid_t process = fork();
  require(process >= 0, "fork");
  if (process == 0) {
    here.close();
    std::exit(live_as_stopped(there, type));
  }
  there.close();
  name_this_process("running process");
  Talk talk(type, here, false);
  Talker talker(talk, 1, 2);
  std::size_t done = 0;
  std::chrono::steady_clock::time_point go_on_at{};
  while (talker.step() || go_on_at != std::chrono::steady_clock::time_point{}) {
    stop_now_and_then(process, talker, stops, done, go_on_at);
  }
  require(done == stops.size(), "the other process was not stopped as often as it should");
  char end = 0;
  while (!here.try_receive(&end, sizeof end)) talk.node().poll();
  talker.finish();
  here.send("", 1);
  require(here.receive(&end, sizeof end), "the stopped process ended early");
  int status = 0;
  waitpid(process, &status, 0);
  if (status != 0) fail("the stopped process ended with status " + std::to_string(status));
  talk.close();
  std::string left;
  const std::size_t files = files_below(directory, &left);
  require(files == 0, "files are left in the runtime directory:\n" + left);
  std::filesystem::remove_all(directory);
  std::printf("%llu messages each way, nothing lost\n", static_cast<unsigned long long>(kMessages));
  return kPassed;
}

}  // namespace

int run_stopped_peer_test() {
  using std::chrono::milliseconds;
  return run(FI_EP_RDM, "stop", {milliseconds(50), milliseconds(500), milliseconds(3000)});
}

int run_stopped_connection_test() {
  using std::chrono::milliseconds;
  return run(FI_EP_MSG, "stop-connections", {milliseconds(50), milliseconds(800)});
}

}  // namespace weft::faults
