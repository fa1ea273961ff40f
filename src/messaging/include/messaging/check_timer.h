// SPDX-License-Identifier: BSD-2-Clause
// When does an endpoint ask the kernel whether its peers still live?
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>

#include "os/clock.h"

namespace weft::messaging {

// Counts the polls of an endpoint, and tells when its peers are to be checked: of a few peers the
// kernel is asked so often that it costs less than 1 % of the time. Used with the endpoint's lock
// held, but polls(), which any thread may call.
class CheckTimer {
 public:
  // Changes with every poll.
  unsigned polls() const { return polls_.load(std::memory_order_relaxed); }
  // Counts a poll; true when due() is to be asked. Looking at the clock at every poll would be half
  // of its cost.
  bool count_poll() {
    const unsigned polls = polls_.load(std::memory_order_relaxed) + 1;
    polls_.store(polls, std::memory_order_relaxed);
    return polls % kPollsPerClock == 0;
  }
  // True when the peers, of which there are so many, are to be checked; `at_once`: whatever the
  // clock says. A sleeper polls too seldom to ask only when count_poll() says so.
  bool due(std::size_t peers, bool at_once) {
    const os::Time now = os::coarse_now();
    if (!at_once && now < next_) return false;
    next_ = now + std::clamp<os::Time::duration>(peers * kPerPeer, kOften, kSeldom);
    return true;
  }

 private:
  static constexpr auto kPerPeer = std::chrono::milliseconds(1);
  static constexpr auto kOften = std::chrono::milliseconds(10);
  static constexpr auto kSeldom = std::chrono::milliseconds(200);  // of however many peers
  static constexpr unsigned kPollsPerClock = 16;

  std::atomic<unsigned> polls_{0};
  os::Time next_{};
};

}  // namespace weft::messaging
