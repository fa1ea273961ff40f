// SPDX-License-Identifier: BSD-2-Clause
// Which packets of a requester are in flight, missing at the peer, or acknowledged?
#pragma once

#include "transport/psn_ranges.h"

namespace weft::transport {

// The packet numbers of one direction of a flow. One thread at a time.
class InFlight {
 public:
  // `first` is the first number that will be used.
  explicit InFlight(Psn first) : next_(first), acknowledged_(first), reported_(first) {}

  // The first number that was never used.
  Psn next() const { return next_; }
  // All packets before it have arrived at the peer.
  Psn acknowledged() const { return acknowledged_; }
  // Numbers from acknowledged() to next().
  std::uint32_t unacknowledged() const {
    return static_cast<std::uint32_t>(next_.since(acknowledged_));
  }
  // Packets that were sent, and about which the peer has said nothing since. Packets that the peer
  // keeps behind a missing one are not in flight, though they are not acknowledged: otherwise
  // retransmissions would wait for the end of their own wait.
  std::uint32_t count() const {
    return static_cast<std::uint32_t>(next_.since(reported_)) + repairs_.count();
  }
  // True when a missing packet may be sent again with a window of so many packets.
  bool may_repair(unsigned window) const {
    return !missing_.empty() && (probes_ != 0 || count() < window);
  }
  // Not when no packet is missing.
  Psn first_missing() const { return missing_.front().first; }

  // The next `count` packets were sent.
  void sent(std::uint32_t count) { next_ = next_.after(static_cast<std::int32_t>(count)); }
  // Those were sent again.
  void repaired(PsnRange range);
  // The peer lacks those.
  void lacks(PsnRange range);
  // Of the packets before `end` the peer has said which it lacks.
  void reported(Psn end) {
    if (reported_.before(end)) reported_ = end;
  }
  // All before `end` have arrived.
  void acknowledge(Psn end);
  // The peer, which names what it lacks, was silent: the first unacknowledged packet and `last` go
  // again whatever the window says. The last one tells the peer of all that it lacks between them;
  // packets that were sent again may be lost again.
  void probe(Psn last);
  // No packet is sent again.
  void forget_missing();
  // The peer refused a request: numbers in flight are void, and it expects next().
  void start_over();

 private:
  Psn next_;
  Psn acknowledged_;
  Psn reported_;         // all before it have arrived, or are in one of the next two
  PsnRanges missing_;    // to be sent again; none before acknowledged_
  PsnRanges repairs_;    // were sent again; none before acknowledged_
  unsigned probes_ = 0;  // of those in missing_, may go whatever the window says
};

}  // namespace weft::transport
