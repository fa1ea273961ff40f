// SPDX-License-Identifier: BSD-2-Clause
// How long to wait between two looks at a state that is not signalled?
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

namespace weft::device {

// Some things have no bell: a peer that copies its half of a message, room in its ring, a receiver
// that holds its senders back. A waiting thread looks again at once for a while, then ever more
// seldom, so that an idle peer costs next to nothing.
class Backoff {
 public:
  // How long to sleep before the next look.
  std::chrono::nanoseconds next() {
    if (looks_ < kEager) {
      ++looks_;
      return std::chrono::nanoseconds(0);
    }
    return std::exchange(nap_, std::min(nap_ * 2, kLongest));
  }
  // There was something, or one may sleep: patience begins anew.
  void reset() { *this = {}; }

 private:
  static constexpr unsigned kEager = 64;
  static constexpr std::chrono::nanoseconds kShortest = std::chrono::microseconds(20);
  static constexpr std::chrono::nanoseconds kLongest = std::chrono::milliseconds(2);

  unsigned looks_ = 0;
  std::chrono::nanoseconds nap_ = kShortest;
};

}  // namespace weft::device
