// SPDX-License-Identifier: BSD-2-Clause
// How many of a flood's requests need not arrive at all?
#pragma once

#include <cstdint>

#include "base/time.h"

namespace weft::cm {

// Counts requests that are held back, and says by how much their stream is to be thinned out before
// it arrives (CmHost::thin_out), so that about kMost remain.
class FloodGauge {
 public:
  static constexpr std::uint64_t kMost = 64'000;  // a second, so that new peers get through
  static constexpr unsigned kMostHalvings = 4;
  static constexpr auto kPeriod = std::chrono::milliseconds(100);

  // A request is held back.
  void count(Time now) {
    if (due_ == Time::max()) begin(now);
    ++held_back_;
  }
  // True when halvings() has changed: at most once in a period.
  bool look(Time now) {
    if (now < due_) return false;
    const auto passed = static_cast<std::uint64_t>((now - begin_).count());
    const std::uint64_t arrived = held_back_ << halvings_;
    unsigned wanted = 0;
    while (wanted < kMostHalvings && arrived * kNanoseconds / passed > kMost << wanted) ++wanted;
    begin(now);
    if (wanted == 0) due_ = Time::max();
    const bool changed = wanted != halvings_;
    halvings_ = wanted;
    return changed;
  }
  unsigned halvings() const { return halvings_; }
  // When look() has something to do without a further request.
  Time due() const { return halvings_ != 0 ? due_ : Time::max(); }

 private:
  static constexpr std::uint64_t kNanoseconds = 1'000'000'000;  // of a second

  void begin(Time now) {
    begin_ = now;
    due_ = now + kPeriod;
    held_back_ = 0;
  }

  Time begin_{};
  Time due_ = Time::max();
  std::uint64_t held_back_ = 0;  // since then
  unsigned halvings_ = 0;
};

}  // namespace weft::cm
