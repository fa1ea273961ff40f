// SPDX-License-Identifier: BSD-2-Clause
// How do words of shared memory change between two reads of the product?
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

namespace weft::fuzz {

// A thread that inverts bits of words again and again while it is told to. The input says which
// bits. No input says when: a failure may need some runs to come again.
class SecondWriter {
 public:
  struct Change {
    std::uint64_t* word;
    std::uint64_t bits;
  };

  ~SecondWriter() {
    set(State::kEnds);
    thread_.join();
  }
  // Writes from now on until stop(). The words stay mapped for so long.
  void start(std::vector<Change> changes) {
    changes_ = std::move(changes);
    begun_ = false;
    set(State::kWrites);
    begun_.wait(false);
  }
  void stop() {
    set(State::kStops);
    state_.wait(State::kStops);
  }

 private:
  enum class State : int { kIdle, kWrites, kStops, kEnds };

  void set(State state) {
    state_ = state;
    state_.notify_all();
  }
  void run() {
    for (;;) {
      state_.wait(State::kIdle);
      if (state_ == State::kEnds) return;
      while (state_ == State::kWrites) invert_all();
      set(State::kIdle);
    }
  }
  void invert_all() {
    constexpr int kTimes = 32;
    for (const Change& each : changes_) {
      const std::atomic_ref<std::uint64_t> word(*each.word);
      for (int i = 0; i < kTimes; ++i) word.fetch_xor(each.bits, std::memory_order_relaxed);
    }
    if (!begun_.exchange(true)) begun_.notify_one();
  }

  std::vector<Change> changes_;
  std::atomic<State> state_{State::kIdle};
  std::atomic<bool> begun_{false};
  std::thread thread_{[this] { run(); }};
};

}  // namespace weft::fuzz
