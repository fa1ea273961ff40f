// SPDX-License-Identifier: BSD-2-Clause
// How does the undisturbed third process answer, and how is each answer checked?
#include "witness.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>

#include "failure.h"
#include "switchboard.h"

namespace weft::faults {

namespace {

constexpr std::uint64_t kRequestTag = std::uint64_t{1} << 60;
constexpr std::uint64_t kAnswerTag = std::uint64_t{2} << 60;
constexpr std::size_t kLargest = 100000;
constexpr int kReceives = 4;
constexpr std::chrono::seconds kAnswerLimit{20};

// One receive and, when it is filled, the answer from the same memory.
class Echo final : public CompletionTarget {
 public:
  Echo(fid_ep* endpoint, fi_addr_t survivor)
      : endpoint_(endpoint), survivor_(survivor), memory_(kLargest) {
    operation_.target = this;
    receive();
  }

  // Tries again to send what the library would not take before.
  void step() {
    if (!wants_send_) return;
    const long status = fi_tsend(endpoint_, memory_.data(), bytes_, nullptr, survivor_, kAnswerTag,
                                 &operation_.context);
    if (status == -FI_EAGAIN) return;
    wants_send_ = false;
    if (status == -FI_ESHUTDOWN) return;
    require_ok(status, "fi_tsend of an answer");
    operation_.pending = true;
  }

  void completed(Operation&, const fi_cq_tagged_entry& entry) override {
    if ((entry.flags & FI_RECV) == 0) return receive();
    bytes_ = entry.len;
    wants_send_ = true;
    step();
  }

  // The survivor parts from the witness before it says so over the channel.
  void failed(Operation&, const fi_cq_err_entry& error) override {
    if (error.err != FI_ECONNRESET) fail("the witness's operation: " + error_text(error.err));
  }

 private:
  // Without a connection any more there is nothing to receive, or to answer: see failed().
  void receive() {
    const ssize_t rc = fi_trecv(endpoint_, memory_.data(), memory_.size(), nullptr, FI_ADDR_UNSPEC,
                                kRequestTag, 0, &operation_.context);
    if (rc == -FI_ESHUTDOWN) return;
    require_ok(rc, "fi_trecv of the witness");
    operation_.pending = true;
  }

  fid_ep* const endpoint_;
  const fi_addr_t survivor_;
  std::vector<std::uint8_t> memory_;
  std::size_t bytes_ = 0;
  Operation operation_;
  bool wants_send_ = false;
};

void connect(Node& node, Switchboard& switchboard, const Address& survivor,
             Owned<fid_ep>& endpoint) {
  require_ok(switchboard.open(), switchboard.failed_call());
  require_ok(switchboard.open_endpoint(nullptr, endpoint), switchboard.failed_call());
  require_ok(switchboard.connect(*endpoint, survivor, kWitnessId), switchboard.failed_call());
  std::optional<ConnectionEvent> event;
  while (!(event = switchboard.read())) node.wait(1);
  require(event->what == FI_CONNECTED,
          "the witness could not connect: " + error_text(event->error));
}

}  // namespace

int live_as_witness(const Channel& channel, fi_ep_type type) {
  name_this_process("witness");
  Node node(type);
  if (node.open(0) != 0) fail(std::string(node.failed_call()) + " of the witness");
  channel.send(&node.address(), sizeof(Address));
  Address survivor{};
  if (!channel.receive(&survivor, sizeof survivor)) return kFailed;
  Switchboard switchboard(node);
  Owned<fid_ep> connected;
  if (node.connects()) connect(node, switchboard, survivor, connected);
  fid_ep* const endpoint = node.connects() ? connected.get() : node.endpoint();
  const fi_addr_t peer = node.connects() ? 0 : node.insert(survivor);
  std::vector<std::unique_ptr<Echo>> echoes;
  for (int i = 0; i < kReceives; ++i) echoes.push_back(std::make_unique<Echo>(endpoint, peer));
  const Lifeline parent(getppid());
  char ended = 0;
  while (!channel.try_receive(&ended, sizeof ended)) {
    node.wait(100);
    for (auto& echo : echoes) echo->step();
    require(!parent.dead(), "the test's first process died");
  }
  connected.reset();
  switchboard.close();
  node.close();
  return kPassed;
}

WitnessLink::WitnessLink(fid_ep* endpoint, fi_addr_t witness, std::uint64_t seed)
    : endpoint_(endpoint), witness_(witness), random_(seed), answer_(kLargest) {
  send_.target = this;
  receive_.target = this;
}

WitnessLink::~WitnessLink() = default;

void WitnessLink::begin() {
  constexpr std::size_t kSizes[] = {kSmallestPayload, 100, 5000, 20000, kLargest};
  request_.resize(kSizes[random_() % std::size(kSizes)]);
  write_payload(request_, kWitnessId, answered_);
  begun_ = std::chrono::steady_clock::now();
  std::fill(answer_.begin(), answer_.begin() + static_cast<std::ptrdiff_t>(request_.size()),
            std::uint8_t{0});
  require_ok(fi_trecv(endpoint_, answer_.data(), answer_.size(), nullptr, FI_ADDR_UNSPEC,
                      kAnswerTag, 0, &receive_.context),
             "fi_trecv of an answer");
  receive_.pending = true;
  wants_send_ = true;
}

void WitnessLink::try_send() {
  const long status = fi_tsend(endpoint_, request_.data(), request_.size(), nullptr, witness_,
                               kRequestTag, &send_.context);
  if (status == -FI_EAGAIN) return;
  require_ok(status, "sending to the undisturbed peer");
  wants_send_ = false;
  send_.pending = true;
}

void WitnessLink::step(bool paused) {
  if (idle() && !paused) begin();
  if (wants_send_) try_send();
  if (!idle()) {
    require(std::chrono::steady_clock::now() - begun_ < kAnswerLimit,
            "the undisturbed peer gave no answer for 20 s; send pending " +
                std::to_string(send_.pending) + ", not taken " + std::to_string(wants_send_) +
                ", receive pending " + std::to_string(receive_.pending));
  }
}

void WitnessLink::completed(Operation& operation, const fi_cq_tagged_entry& entry) {
  if (&operation == &send_) return;
  const auto end = answer_.begin() + static_cast<std::ptrdiff_t>(entry.len);
  require(entry.len == request_.size() && std::equal(answer_.begin(), end, request_.begin()),
          "the undisturbed peer's answer is wrong");
  ++answered_;
}

void WitnessLink::failed(Operation& operation, const fi_cq_err_entry& error) {
  fail(std::string(&operation == &send_ ? "sending to" : "receiving from") +
       " the undisturbed peer: " + error_text(error.err));
}

}  // namespace weft::faults
