// SPDX-License-Identifier: BSD-2-Clause
// What do two processes need to exchange one large message, step by step as a third one orders?
#include "large_message.h"

#include <poll.h>

#include <algorithm>

#include "failure.h"

namespace weft::faults {

namespace {

constexpr std::uint64_t kMessage = 1;
constexpr std::uint8_t kOtherUse = 0xEE;

}  // namespace

int Orders::hear() const {
  int word = 0;
  require(channel_.receive(&word, sizeof word), "another process of the test ended early");
  return word;
}

bool Orders::heard() const {
  int word = 0;
  return channel_.try_receive(&word, sizeof word);
}

bool Orders::wait(int milliseconds) const {
  pollfd entry{channel_.fd(), POLLIN, 0};
  return poll(&entry, 1, milliseconds) > 0;
}

LargeMessage::LargeMessage() : memory_(kBytes) {
  operation_.target = this;
  operation_.memory = memory_;
}

void LargeMessage::send(const Talk& talk) {
  fill_pattern(memory_, kMessage);
  operation_.pending = true;
  require_ok(fi_send(talk.endpoint(), memory_.data(), memory_.size(), nullptr, talk.peer(),
                     &operation_.context),
             "fi_send");
}

void LargeMessage::receive(const Talk& talk) {
  operation_.pending = true;
  require_ok(fi_recv(talk.receives(), memory_.data(), memory_.size(), nullptr, FI_ADDR_UNSPEC,
                     &operation_.context),
             "fi_recv");
}

void LargeMessage::overwrite() { std::ranges::fill(memory_, kOtherUse); }

bool LargeMessage::is_overwritten() const {
  return std::ranges::all_of(memory_, [](std::uint8_t byte) { return byte == kOtherUse; });
}

bool LargeMessage::is_message() const { return is_pattern(memory_, kMessage); }

void send_greeting(const Talk& talk) {
  const std::uint64_t greeting = 0;
  long status = -FI_EAGAIN;
  while (status == -FI_EAGAIN) {
    status = fi_inject(talk.endpoint(), &greeting, sizeof greeting, talk.peer());
    talk.node().poll();
  }
  require_ok(status, "fi_inject");
}

void await_greeting(const Talk& talk) {
  struct Ignored final : CompletionTarget {
    void completed(Operation&, const fi_cq_tagged_entry&) override {}
    void failed(Operation&, const fi_cq_err_entry& error) override {
      fail("a greeting: " + error_text(error.err));
    }
  } target;
  std::uint64_t greeting = 0;
  Operation operation;
  operation.target = &target;
  operation.pending = true;
  require_ok(fi_recv(talk.receives(), &greeting, sizeof greeting, nullptr, FI_ADDR_UNSPEC,
                     &operation.context),
             "fi_recv");
  while (operation.pending) talk.node().poll();
}

}  // namespace weft::faults
