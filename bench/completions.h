// SPDX-License-Identifier: BSD-2-Clause
// How many operations have completed, wherever the program sees that.
#pragma once

#include <cstdint>

namespace weft::bench {

// Counts completions. Waiting is polling, which also lets a manually progressed provider work. A
// completion with error is fatal. The context of each operation, sent_context() or
// received_context(), is the number that it adds to. One thread; no cache line is shared with
// another thread's.
class alignas(64) Completions {
 public:
  Completions() = default;
  virtual ~Completions() = default;
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  // Which of the two the caller waits for: the implementation need not check the other one.
  enum class Interest { kBoth, kSent, kReceived };

  // Looks what has completed.
  virtual void poll(Interest interest) = 0;
  void poll() { poll(Interest::kBoth); }

  // Operations that this process started (sends, RMA), and receives, since start_phase().
  std::uint64_t sent() const { return sent_; }
  std::uint64_t received() const { return received_; }
  void* sent_context() { return &sent_; }
  void* received_context() { return &received_; }
  // An injected operation has no completion of its own.
  void count_injected() { ++sent_; }

  virtual void start_phase() { sent_ = received_ = 0; }

  void wait_sent(std::uint64_t count) {
    while (sent_ < count) poll(Interest::kSent);
  }
  void wait_received(std::uint64_t count) {
    while (received_ < count) poll(Interest::kReceived);
  }

 protected:
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
};

}  // namespace weft::bench
