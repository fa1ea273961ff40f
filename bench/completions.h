// SPDX-License-Identifier: BSD-2-Clause
// How many operations have completed: polling the completion queue and counting.
#pragma once

#include <rdma/fi_eq.h>

#include <cstdint>

namespace weft::bench {

// Counts completions of one queue. The context of every operation is the counter that it is to
// increment, sent_context() or received_context(). A completion with error is fatal.
class Completions {
 public:
  explicit Completions(fid_cq* queue) : queue_(queue) {}
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  // Reads what has completed, which also lets a manually progressed provider work.
  void poll();

  // Operations that this process started (sends, RMA), and receives, since start_phase().
  std::uint64_t sent() const { return sent_; }
  std::uint64_t received() const { return received_; }
  void* sent_context() { return &sent_; }
  void* received_context() { return &received_; }
  // An injected operation has no completion of its own.
  void count_injected() { ++sent_; }

  void start_phase() { sent_ = received_ = 0; }

  void wait_sent(std::uint64_t count) {
    while (sent_ < count) poll();
  }
  void wait_received(std::uint64_t count) {
    while (received_ < count) poll();
  }

 private:
  [[noreturn]] void report_error();

  fid_cq* queue_;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
};

}  // namespace weft::bench
