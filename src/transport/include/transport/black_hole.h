// SPDX-License-Identifier: BSD-2-Clause
// Do large packets vanish on the path?
//
// A router may drop large packets without an ICMP error (RFC 4821, RFC 8899): then the peer is
// heard, and the packet that it lacks first, a large one, does not arrive however often it is sent.
#pragma once

#include <cstddef>

#include "transport/settings.h"

namespace weft::transport {

// Counts the retransmissions of the oldest large packet. A retransmission counts only if the peer
// was heard since the one before: a silent peer tells nothing about the packet size.
class BlackHole {
 public:
  // A packet of the peer arrived.
  void note_received() { received_since_ = true; }
  // The oldest packet, or the request of the oldest lacking answer, of so many bytes, is sent
  // again.
  void retried(std::size_t bytes, Time now) {
    // Within less time losses have one cause: a queue that was full.
    constexpr Duration kBetweenTries = std::chrono::milliseconds(20);
    if (!received_since_ || now - retried_at_ < kBetweenTries || bytes <= kSurePathMtu) return;
    received_since_ = false;
    retried_at_ = now;
    ++retries_;
  }
  // A packet got through that could be the oldest one.
  void refute() { retries_ = 0; }
  // A retransmission has counted since.
  bool possible() const { return retries_ != 0; }
  // So many have that large packets seem to vanish.
  bool suspected() const {
    constexpr unsigned kRetries = 8;
    return retries_ >= kRetries;
  }

 private:
  unsigned retries_ = 0;
  Time retried_at_{};
  bool received_since_ = false;
};

}  // namespace weft::transport
