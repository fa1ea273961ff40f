// SPDX-License-Identifier: BSD-2-Clause
// What do two processes need to exchange one large message, step by step as a third one orders?
#pragma once

#include <string>
#include <vector>

#include "fork_server.h"
#include "talk.h"

namespace weft::faults {

// The channel over which a process is told to go on, and says how far it has come.
class Orders {
 public:
  explicit Orders(Channel channel) : channel_(std::move(channel)) {}
  void say(int word = 0) const { channel_.send(&word, sizeof word); }
  // Waits for a word. Ends the test when the other process has ended.
  int hear() const;
  // True if a word was there.
  bool heard() const;
  // True as soon as a word is there, false after so long without one.
  bool wait(int milliseconds) const;

 private:
  Channel channel_;
};

// One large send or receive, whose end may be an error.
class LargeMessage final : public CompletionTarget {
 public:
  // Takes up several chunks of the copying of both sides.
  static constexpr std::size_t kBytes = std::size_t{1} << 20;

  LargeMessage();
  void send(const Talk& talk);
  void receive(const Talk& talk);

  bool pending() const { return operation_.pending; }
  int error() const { return error_; }
  Bytes memory() { return memory_; }
  // Something else than the message, as if the program used the memory anew.
  void overwrite();
  bool is_overwritten() const;
  bool is_message() const;

  void completed(Operation&, const fi_cq_tagged_entry&) override { error_ = 0; }
  void failed(Operation&, const fi_cq_err_entry& error) override { error_ = error.err; }

 private:
  std::vector<std::uint8_t> memory_;
  Operation operation_;
  int error_ = 0;
};

// One small message from the side that sends to the other, so that each has opened its way to the
// other one when this returns.
void send_greeting(const Talk& talk);
void await_greeting(const Talk& talk);

}  // namespace weft::faults
