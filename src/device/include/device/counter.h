// SPDX-License-Identifier: BSD-2-Clause
// How many operations have finished?
#pragma once

#include <atomic>

#include "device/engine.h"

namespace weft::device {

// Counts successes and failures (fi_cntr(3)). Any thread.
class Counter {
 public:
  Counter(bool thread_safe, WaitKind wait) : engines_(thread_safe, wait) {}

  // Drives the endpoints that count here; waiting and its descriptor.
  EngineGroup& engines() { return engines_; }

  std::uint64_t value() const { return value_.load(std::memory_order_acquire); }
  std::uint64_t errors() const { return errors_.load(std::memory_order_acquire); }
  void add(std::uint64_t count) {
    value_.fetch_add(count, std::memory_order_acq_rel);
    engines_.notify();
  }
  void add_errors(std::uint64_t count) {
    errors_.fetch_add(count, std::memory_order_acq_rel);
    engines_.notify();
  }
  void set(std::uint64_t value) {
    value_.store(value);
    engines_.notify();
  }
  void set_errors(std::uint64_t value) {
    errors_.store(value);
    engines_.notify();
  }

 private:
  EngineGroup engines_;
  std::atomic<std::uint64_t> value_{0};
  std::atomic<std::uint64_t> errors_{0};
};

}  // namespace weft::device
