// SPDX-License-Identifier: BSD-2-Clause
// How many operations have finished?
#pragma once

#include <atomic>
#include <cstdint>

#include "base/usable.h"
#include "device/engine.h"

namespace weft::device {

// Counts successes and failures (fi_cntr(3)). Any thread.
class Counter : public Usable {
 public:
  // Wants to hear when a counter has come to a sum of successes and failures.
  class Watcher {
   public:
    // It has. Called with any lock held, so it may only take a note.
    virtual void reached() = 0;

   protected:
    ~Watcher() = default;
  };

  Counter(const Locking& locking, WaitKind wait) : engines_(locking, wait) {}

  // Drives the endpoints that count here; waiting and its descriptor.
  EngineGroup& engines() { return engines_; }

  std::uint64_t value() const { return value_.load(); }
  std::uint64_t errors() const { return errors_.load(); }
  void add(std::uint64_t count) {
    value_.fetch_add(count);
    signal();
  }
  void add_errors(std::uint64_t count) {
    errors_.fetch_add(count);
    signal();
  }
  void set(std::uint64_t value) {
    value_.store(value);
    signal();
  }
  void set_errors(std::uint64_t value) {
    errors_.store(value);
    signal();
  }

  // Has `watcher`, always the same one, told of every change after which value() + errors() is
  // `sum` or more; of none when that is kNoSum. Either it is told of a change or the caller sees
  // the new values after this.
  static constexpr std::uint64_t kNoSum = ~std::uint64_t{0};
  void watch(Watcher& watcher, std::uint64_t sum) {
    watcher_.store(&watcher, std::memory_order_relaxed);
    awaited_.store(sum);
  }

 private:
  void signal() {
    const std::uint64_t awaited = awaited_.load();
    if (awaited != kNoSum && value_.load() + errors_.load() >= awaited) [[unlikely]]
      watcher_.load(std::memory_order_relaxed)->reached();
    engines_.notify();
  }

  EngineGroup engines_;
  std::atomic<std::uint64_t> value_{0};
  std::atomic<std::uint64_t> errors_{0};
  std::atomic<std::uint64_t> awaited_{kNoSum};
  std::atomic<Watcher*> watcher_{nullptr};
};

}  // namespace weft::device
