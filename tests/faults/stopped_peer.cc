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
#include "inbox.h"
#include "node.h"
#include "nursery.h"
#include "resources.h"
#include "tests.h"

namespace weft::faults {

namespace {

constexpr std::uint64_t kMessages = 20000;
constexpr std::chrono::milliseconds kStops[] = {
    std::chrono::milliseconds(50), std::chrono::milliseconds(500), std::chrono::milliseconds(3000)};
constexpr unsigned kSeconds = 90;
constexpr std::size_t kWindow = 64;

// Sends kMessages to the other side, of all sizes, and takes as many from it, each once.
class Talker final : public CompletionTarget {
 public:
  Talker(Node& node, fi_addr_t peer, std::uint64_t own_id, std::uint64_t peer_id)
      : node_(node),
        peer_(peer),
        own_id_(own_id),
        random_(own_id),
        inbox_(
            node, {true, tag_of(peer_id, Use::kStream), peer, 16, kLargest, true},
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
    const long status = fi_tsend(node_.endpoint(), operation.memory.data(), bytes, nullptr, peer_,
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

fi_addr_t meet(Node& node, const Channel& channel) {
  if (node.open(0) != 0) fail(std::string(node.failed_call()) + " failed");
  channel.send(&node.address(), sizeof(Address));
  Address other{};
  require(channel.receive(&other, sizeof other), "the other process ended early");
  return node.insert(other);
}

int live_as_stopped(const Channel& channel) {
  name_this_process("stopped process");
  Node node;
  const fi_addr_t peer = meet(node, channel);
  Talker talker(node, peer, 2, 1);
  while (talker.step()) {
  }
  // The other side may still need our completions: go on until it says that it has all.
  channel.send("", 1);
  char end = 0;
  while (!channel.try_receive(&end, sizeof end)) node.poll();
  talker.finish();
  return kPassed;
}

void stop_now_and_then(pid_t process, const Talker& talker, std::size_t& stops,
                       std::chrono::steady_clock::time_point& go_on_at) {
  const auto now = std::chrono::steady_clock::now();
  if (go_on_at != std::chrono::steady_clock::time_point{}) {
    if (now < go_on_at) return;
    kill(process, SIGCONT);
    go_on_at = {};
  } else if (stops < std::size(kStops) && talker.progress() > (stops + 1) * kMessages / 4) {
    kill(process, SIGSTOP);
    go_on_at = now + kStops[stops++];
  }
}

}  // namespace

int run_stopped_peer_test() {
  const std::string directory = make_runtime_directory("stop");
  const Watchdog watchdog("messages with a process that is stopped now and then", kSeconds);
  Channel here;
  Channel there;
  Channel::make_pair(here, there);
  const pid_t process = fork();
  require(process >= 0, "fork");
  if (process == 0) {
    here.close();
    std::exit(live_as_stopped(there));
  }
  there.close();
  name_this_process("running process");
  Node node;
  Talker talker(node, meet(node, here), 1, 2);
  std::size_t stops = 0;
  std::chrono::steady_clock::time_point go_on_at{};
  while (talker.step() || go_on_at != std::chrono::steady_clock::time_point{}) {
    stop_now_and_then(process, talker, stops, go_on_at);
  }
  require(stops == std::size(kStops), "the other process was not stopped as often as it should");
  char end = 0;
  while (!here.try_receive(&end, sizeof end)) node.poll();
  here.send("", 1);
  talker.finish();
  int status = 0;
  waitpid(process, &status, 0);
  if (status != 0) fail("the stopped process ended with status " + std::to_string(status));
  node.close();
  std::string left;
  const std::size_t files = files_below(directory, &left);
  require(files == 0, "files are left in the runtime directory:\n" + left);
  std::filesystem::remove_all(directory);
  std::printf("%llu messages each way, nothing lost\n", static_cast<unsigned long long>(kMessages));
  return kPassed;
}

}  // namespace weft::faults
