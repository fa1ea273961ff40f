// SPDX-License-Identifier: BSD-2-Clause
// How fast may unacknowledged packets leave?
#include "transport/pace.h"

#include <algorithm>

namespace weft::transport {
namespace {

using Seconds = std::chrono::duration<double>;

// Notifications come at most every 50 us (CongestionNotifier): in two such times there is one if
// there is still a queue.
constexpr Duration kPeriod = std::chrono::microseconds(100);
constexpr double kAfterMark = 0.7;  // as of a window
constexpr double kStep = 10e6;
// Bytes in a second: eight packets of 1 KiB in a millisecond, and more than anybody sends.
constexpr double kLeastRate = 8e6;
constexpr double kMost = 12.5e9;

}  // namespace

// In this period, or in the one before: at the beginning of a burst nothing has left yet.
double Pace::measured(Time now) const {
  return std::max(before_, bytes_ / Seconds(std::max(now - began_, kPeriod)).count());
}

void Pace::sent(std::size_t bytes, Time now) {
  if (now - began_ >= kPeriod) {
    before_ = bytes_ / Seconds(now - began_).count();
    began_ = now;
    bytes_ = 0;
  }
  bytes_ += static_cast<double>(bytes);
  recover(now);
  if (limit_ == 0) return;
  const Seconds takes(static_cast<double>(bytes) / limit_);
  due_ += std::chrono::duration_cast<Duration>(takes);
}

// Time in which more might have left than did. The part that may not be made up for counts as idle:
// the absence of notifications then says nothing about the path.
void Pace::rest_until(Time now) {
  const Duration rest = now - kSlack - due_;
  if (rest <= Duration::zero()) return;
  due_ += rest;
  recovered_ += rest;
}

void Pace::recover(Time now) {
  rest_until(now);
  for (; limit_ != 0 && now - recovered_ >= kPeriod; recovered_ += kPeriod) {
    limit_ = (limit_ + goal_) / 2;
    goal_ += kStep;
    if (limit_ >= kMost) limit_ = 0;
  }
}

void Pace::marked(Time now) {
  if (marked_ != Time{} && now - marked_ < kPeriod) return;
  marked_ = now;
  recover(now);
  goal_ = measured(now);
  if (limit_ != 0) goal_ = std::min(goal_, limit_);
  goal_ = std::max(goal_, kLeastRate);
  limit_ = std::max(goal_ * kAfterMark, kLeastRate);
  recovered_ = now;
  due_ = std::max(due_, now);
}

}  // namespace weft::transport
