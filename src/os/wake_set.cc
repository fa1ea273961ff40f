// SPDX-License-Identifier: BSD-2-Clause
// What wakes the threads that sleep on a port?
#include "os/wake_set.h"

#include <utility>

namespace weft::os {

Result<WakeSet> WakeSet::create() {
  auto members = EventSet::create();
  if (!members) return members.error();
  auto timer = Timer::create();
  if (!timer) return timer.error();
  WakeSet set;
  set.members_ = std::move(members).value();
  set.timer_ = std::move(timer).value();
  if (Status ok = set.add(set.timer_.fd()); !ok) return ok.error();
  return set;
}

void WakeSet::ring() {
  wake_in(std::chrono::nanoseconds(0));
  woken_ = true;
}

void WakeSet::silence() {
  if (woken_) wake_in(Timer::kNever);
}

// The timer of a child is its parent's.
void WakeSet::wake_in(std::chrono::nanoseconds later) {
  if (later == Timer::kNever && due_ == Time::max()) return;
  woken_ = false;
  due_ = later == Timer::kNever ? Time::max() : Time::clock::now() + later;
  if (!origin_.inherited()) timer_.set(later);
}

void WakeSet::wake_at_latest(std::chrono::nanoseconds later) {
  const Time now = Time::clock::now();
  const bool pending = !woken_ && due_ > now && due_ != Time::max();
  if (!pending || (later != Timer::kNever && now + later < due_)) wake_in(later);
}

void WakeSet::wake_within(std::chrono::nanoseconds later) {
  if (later != Timer::kNever && Time::clock::now() + later < due_) wake_in(later);
}

}  // namespace weft::os
