// SPDX-License-Identifier: BSD-2-Clause
// How long a loop takes when nothing interrupts it: the median of short pieces.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::bench {

// Times a loop of ITERATIONS equal steps in pieces of 64. An interruption of the process spoils the
// pieces that it falls into and leaves the median alone; ucx_perftest reports a median too.
class PiecewiseTimer {
 public:
  // Starts now.
  explicit PiecewiseTimer(std::uint64_t iterations) : iterations_(iterations) {
    pieces_.reserve(iterations / kPiece);
    start_ = piece_start_ = Clock::now();
  }

  // To be called after each step; ITERATION counts from 0.
  void step(std::uint64_t iteration) {
    if ((iteration + 1) % kPiece != 0) return;
    const auto now = Clock::now();
    pieces_.push_back(seconds(now - piece_start_));
    piece_start_ = now;
  }

  // For all steps, at the median speed; the time that passed if there were too few for that.
  double seconds_at_median() {
    if (pieces_.size() < kFewestPieces) return seconds(Clock::now() - start_);
    const auto middle = pieces_.begin() + static_cast<std::ptrdiff_t>(pieces_.size() / 2);
    std::nth_element(pieces_.begin(), middle, pieces_.end());
    return *middle / kPiece * static_cast<double>(iterations_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t kPiece = 64;  // reading the clock costs under 1 ns of a step
  static constexpr std::size_t kFewestPieces = 5;

  static double seconds(Clock::duration duration) {
    return std::chrono::duration<double>(duration).count();
  }

  std::uint64_t iterations_;
  std::vector<double> pieces_;
  Clock::time_point start_;
  Clock::time_point piece_start_;
};

}  // namespace weft::bench
