// SPDX-License-Identifier: BSD-2-Clause
// What do a process in shortage and its partner say to each other?
#include "partner.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "failure.h"

namespace weft::faults {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint64_t kRequestTag = 0x11;
constexpr std::uint64_t kAnswerTag = 0x22;
constexpr std::size_t kSmall = 100;
constexpr std::size_t kLarge = 100000;
constexpr std::chrono::seconds kAnswerLimit{5};

// In front of each message.
struct Letterhead {
  Address sender;
  std::uint64_t number;
};

// Answers one message at a time.
class Partner final : public CompletionTarget {
 public:
  explicit Partner(Node& node) : node_(node), memory_(kLarge) {
    operation_.target = this;
    receive();
  }

  void receive() {
    arrived_ = 0;
    require_ok(fi_trecv(node_.endpoint(), memory_.data(), memory_.size(), nullptr, FI_ADDR_UNSPEC,
                        kRequestTag, 0, &operation_.context),
               "fi_trecv");
    operation_.pending = true;
  }

  // True when a message was there; it is answered or its sender is gone.
  bool answer() {
    if (operation_.pending) return false;
    if (arrived_ >= sizeof(Letterhead)) send_back();
    receive();
    return true;
  }

  void completed(Operation&, const fi_cq_tagged_entry& entry) override {
    if ((entry.flags & FI_RECV) != 0) arrived_ = entry.len;
  }
  void failed(Operation&, const fi_cq_err_entry&) override {}

 private:
  void send_back() {
    Letterhead letterhead{};
    std::memcpy(&letterhead, memory_.data(), sizeof letterhead);
    const fi_addr_t sender = node_.insert(letterhead.sender);
    const auto end = Clock::now() + kAnswerLimit;
    long status = -FI_EAGAIN;
    while (status == -FI_EAGAIN) {
      require(Clock::now() < end, "an answer to a process in shortage was not taken for 5 s");
      status = fi_tsend(node_.endpoint(), memory_.data(), arrived_, nullptr, sender, kAnswerTag,
                        &operation_.context);
      if (status == -FI_EAGAIN) node_.poll();
    }
    operation_.pending = status == 0;
    while (operation_.pending) {
      require(Clock::now() < end, "an answer to a process in shortage stayed pending for 5 s");
      node_.poll();
    }
    node_.remove(sender);
  }

  Node& node_;
  std::vector<std::uint8_t> memory_;
  Operation operation_;
  std::size_t arrived_ = 0;
};

}  // namespace

int live_as_partner(const Channel& channel) {
  name_this_process("partner");
  Node node;
  if (node.open(0) != 0) fail(std::string(node.failed_call()) + " of the partner");
  channel.send(&node.address(), sizeof(Address));
  Partner partner(node);
  char end = 0;
  while (!channel.try_receive(&end, sizeof end)) {
    if (!partner.answer()) node.wait(20);
  }
  node.close();
  return kPassed;
}

Guest::Guest() : memory_(std::make_unique<std::uint8_t[]>(2 * kLarge)) {
  send_.target = this;
  send_.memory = {memory_.get(), kLarge};
  receive_.target = this;
  receive_.memory = {memory_.get() + kLarge, kLarge};
}

Guest::~Guest() {
  for (auto& region : regions_) region.reset();
  node_.close();
}

int Guest::open(const Address& partner) {
  const int status = node_.open_found();
  if (status == 0) partner_ = node_.insert(partner);
  return status;
}

int Guest::register_some() {
  for (auto& region : regions_) {
    region.reset();
    const int status = node_.register_memory({memory_.get(), 2 * kLarge}, next_key_++, region);
    if (status != 0) return status;
  }
  return 0;
}

int Guest::post_receive() {
  answered_ = false;
  if (receive_.pending) return 0;
  const long status = fi_trecv(node_.endpoint(), receive_.memory.data(), receive_.memory.size(),
                               nullptr, FI_ADDR_UNSPEC, kAnswerTag, 0, &receive_.context);
  receive_.pending = status == 0;
  return static_cast<int>(-status);
}

int Guest::post_send(std::size_t bytes) {
  send_.bytes = bytes;
  const Letterhead letterhead{node_.address(), ++number_};
  fill_pattern(send_.memory.first(bytes), number_);
  std::memcpy(send_.memory.data(), &letterhead, sizeof letterhead);
  const long status = fi_tsend(node_.endpoint(), send_.memory.data(), bytes, nullptr, partner_,
                               kRequestTag, &send_.context);
  send_.pending = status == 0;
  return static_cast<int>(-status);
}

int Guest::exchange_one(std::size_t bytes, Clock::time_point end) {
  error_ = 0;
  // What an exchange before this one left pending comes first.
  while (send_.pending && Clock::now() < end) node_.poll();
  if (send_.pending) return ETIMEDOUT;
  error_ = 0;
  int status = EAGAIN;
  while (status == EAGAIN) {
    if (Clock::now() > end) return ETIMEDOUT;
    status = post_receive();
    if (status == 0) status = post_send(bytes);
    if (status == EAGAIN) node_.poll();
  }
  while (status == 0 && error_ == 0 && !(answered_ && !send_.pending)) {
    if (Clock::now() > end) return ETIMEDOUT;
    node_.poll();
    if (error_ == 0 && !answered_) status = post_receive();
  }
  return status != 0 ? status : error_;
}

int Guest::exchange(std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  const int status = exchange_one(kSmall, end);
  return status != 0 ? status : exchange_one(kLarge, end);
}

void Guest::completed(Operation& operation, const fi_cq_tagged_entry& entry) {
  if (&operation == &send_) return;
  Letterhead letterhead{};
  std::memcpy(&letterhead, receive_.memory.data(), sizeof letterhead);
  if (letterhead.number != number_) return;  // a late answer to what was given up
  require(entry.len == send_.bytes &&
              std::memcmp(receive_.memory.data(), send_.memory.data(), entry.len) == 0,
          "the partner's answer is wrong");
  answered_ = true;
}

void Guest::failed(Operation&, const fi_cq_err_entry& error) { error_ = error.err; }

}  // namespace weft::faults
