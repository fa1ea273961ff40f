// SPDX-License-Identifier: BSD-2-Clause
// When has a peer been silent for too long, and how long does it ask to wait?
#pragma once

#include <algorithm>

#include "transport/settings.h"

namespace weft::transport {

// The retransmission timer of a requester, and the RNR timer, which stops it. Round trips are
// measured elsewhere: `rto` is always the timeout that follows from them. One thread at a time.
class RetryTimer {
 public:
  explicit RetryTimer(Duration rto) : rto_(rto) {}

  // Waiting for the peer begins, or it made progress: it has `rto` from now on.
  void restart(Time now, Duration rto) {
    progress_ = now;
    timeouts_ = 0;
    rto_ = rto;
    expires_ = now + rto;
  }
  // The same if the timer does not run.
  void start(Time now, Duration rto) {
    if (expires_ == Time::max()) restart(now, rto);
  }
  // Nothing is in flight.
  void stop() { expires_ = Time::max(); }
  // The next backoff begins at `rto` again.
  void reset_backoff(Duration rto) { rto_ = rto; }
  bool expired(Time now) const { return now >= expires_; }
  // The timer has expired: the next timeout is twice as long, up to the ACK timeout of `settings`.
  // False when the peer has made no progress for as long as `settings` allow (IBTA 9.7.6.1.3).
  bool back_off(Time now, const Settings& settings) {
    ++timeouts_;
    // If the caller has not polled meanwhile, a response may have arrived unread.
    const bool limited = settings.ack_timeout != Duration::max() && timeouts_ > settings.retries;
    if (limited && now - progress_ >= settings.ack_timeout * (settings.retries + 1)) return false;
    rto_ = std::min(2 * rto_, settings.ack_timeout);
    expires_ = now + rto_;
    return true;
  }
  // Timeouts without progress between them.
  unsigned timeouts() const { return timeouts_; }

  // The receiver was not ready, and wants no packet before `until`.
  void wait_until(Time until) {
    waiting_ = true;
    not_before_ = until;
  }
  bool waiting() const { return waiting_; }
  bool waits(Time now) const { return waiting_ && now < not_before_; }
  // That time is over: it does not count as silence of the peer.
  void end_wait(Time now, Duration rto) {
    if (!waiting_) return;
    waiting_ = false;
    if (expires_ != Time::max()) restart(now, rto);
  }
  // The receiver was not ready once more; how often since it was ready.
  unsigned count_not_ready() { return ++not_ready_; }
  void receiver_ready() { not_ready_ = 0; }

  // When one of the two timers expires; Time::max() when neither runs.
  Time deadline() const { return waiting_ ? not_before_ : expires_; }

 private:
  Time progress_{};  // the last, or when waiting for some began
  Time expires_ = Time::max();
  Duration rto_;  // doubles while the peer is silent
  unsigned timeouts_ = 0;
  bool waiting_ = false;
  Time not_before_{};
  unsigned not_ready_ = 0;
};

}  // namespace weft::transport
