// SPDX-License-Identifier: BSD-2-Clause
// How many packets may be in flight?
#pragma once

#include "transport/settings.h"

namespace weft::transport {

// Grows while acknowledgements come, shrinks when packets are lost, when they take much longer than
// the quickest ones did (they wait in a queue), and when a switch marked them. It shrinks once per
// round trip at most. Also measures the round trip.
class Window {
 public:
  explicit Window(const Settings& settings);

  // Packets.
  unsigned size() const { return static_cast<unsigned>(size_); }
  // How long to wait for an answer before something must have been lost.
  Duration rto() const { return rto_; }
  // The smoothed round trip; 0 before the first sample.
  Duration round_trip() const { return smooth_; }

  // `count` packets more have arrived. `full`: the window was what held others back.
  void acknowledged(unsigned count, bool full);
  // One packet that was sent once only took that long to be answered.
  void timed(Duration round_trip, Time now);
  // Packets were lost, which the peer noticed.
  void lost(Time now);
  // A switch on the way had a queue (explicit congestion notification).
  // What that says of the way holds for a second: without another mark the window doubles again.
  void marked(Time now);
  // Nothing was heard for so long that it starts over.
  void silent();
  // Then packets were acknowledged after all, of which none is known to be lost: the peer had not
  // looked, and it is as before.
  void note_answer();
  // Packets have that payload from now on.
  void carries(std::size_t path_mtu);

 private:
  bool shrink(double factor, Time now);

  const double most_;
  double growth_ = 1;  // packets in a round trip
  double size_;
  double growth_ends_;         // up to there it doubles in each round trip
  double before_silence_ = 0;  // 0: all has been said since
  Duration least_round_trip_ = Duration::max();
  Duration smooth_{0};
  Duration deviation_{0};
  Duration rto_;
  const Duration max_rto_;
  Time shrunk_{};
  bool by_mark_ = false;  // the last time, and what that said still holds
};

}  // namespace weft::transport
