// SPDX-License-Identifier: BSD-2-Clause
// How does a datagram become a packet, and when does that leave?
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/psn.h"
#include "link/flow.h"
#include "os/clock.h"
#include "roce/trains.h"
#include "transport/pace.h"

namespace weft::udp {

// Sends datagrams from one queue pair. The first ones after a poll or a pause leave at once, each
// by itself; those that follow them share trains, if they may. One thread at a time.
class DatagramSender {
 public:
  // Packets leave through `trains`, which outlive this.
  DatagramSender(roce::Trains& trains, std::uint32_t queue_pair)
      : trains_(trains), queue_pair_(queue_pair) {}

  // Sends a message, or keeps it until flush(), for as long as `way` has to live. kTooSoon when
  // `pace` does not allow it yet, kAgain when the socket has no room. Errors: EOPNOTSUPP for what
  // is no datagram, EMSGSIZE.
  link::Outcome send(const roce::Path& path, transport::Pace& pace, std::uint32_t destination,
                     const link::SendRequest& request, os::Time now);
  // Sends what was kept.
  void flush() { trains_.flush(); }
  // The same, and what does not leave then is lost.
  void finish();
  // Sends what was kept; what comes next comes after a pause.
  void poll();
  // Until the next poll() nothing is kept.
  void keep_nothing() { keeps_ = false; }
  bool has_kept() const { return !trains_.empty(); }

 private:
  // A burst has begun when so many have left by themselves.
  static constexpr unsigned kAtOnce = 2;
  // Far longer than the time between two sends of a burst; slower programs gain nothing by it.
  static constexpr std::chrono::microseconds kPause{20};

  bool leaves(bool may_linger, os::Time now);

  roce::Trains& trains_;
  const std::uint32_t queue_pair_;
  Psn psn_;
  unsigned in_burst_ = 0;  // have left, or are kept, since a poll or a pause
  os::Time last_{};
  bool keeps_ = true;
};

}  // namespace weft::udp
