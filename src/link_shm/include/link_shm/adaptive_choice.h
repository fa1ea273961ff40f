// SPDX-License-Identifier: BSD-2-Clause
// Which of two methods of doing the same thing takes less time just now?
#pragma once

#include <algorithm>
#include <chrono>

namespace weft::shm {

// Now and then times a few operations of each method and takes the faster one until the next time:
// what is faster depends on the machine and on what the peer is doing. One thread.
class AdaptiveChoice {
 public:
  enum class Method { kFirst, kSecond };

  // The method that the next operation should take.
  Method choose() {
    turn_ = (turn_ + 1) % kPeriod;
    if (turn_ >= 2 * kTrial) return faster_;
    if (turn_ == 0) spent_[0] = spent_[1] = {};
    return turn_ < kTrial ? Method::kFirst : Method::kSecond;
  }
  // True when the operation just chosen is to be timed, and took() called when it has ended. The
  // first of a trial are not: they find the caches cold.
  bool timed() const { return turn_ < 2 * kTrial && turn_ % kTrial >= kTrial / 2; }
  void took(std::chrono::nanoseconds time) {
    spent_[turn_ / kTrial] += time;
    faster_ = spent_[1] < spent_[0] ? Method::kSecond : Method::kFirst;
    if (turn_ >= kTrial) pause_ = kShortPause;
  }

  // The second method failed this time: the first one it is, until the next trial. That comes soon,
  // as a peer that has lost its processor for a moment will be back, but ever later if it fails,
  // too.
  void second_failed() {
    faster_ = Method::kFirst;
    turn_ = kPeriod - 1 - pause_;
    pause_ = std::min(2 * pause_, kLongPause);
  }

 private:
  static constexpr unsigned kTrial = 16;  // operations of each method, one after the other
  static constexpr unsigned kPeriod = 2048;
  static constexpr unsigned kShortPause = 2 * kTrial;
  static constexpr unsigned kLongPause = kPeriod - 1 - 2 * kTrial;

  unsigned turn_ = kPeriod - 1;
  unsigned pause_ = kShortPause;
  Method faster_ = Method::kFirst;
  std::chrono::nanoseconds spent_[2]{};
};

}  // namespace weft::shm
