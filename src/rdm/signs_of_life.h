// SPDX-License-Identifier: BSD-2-Clause
// Does the peer of a flow still live?
#pragma once

#include "os/clock.h"

namespace weft::rdm {

// When the peer was last heard of, and which ICMP errors arrived since. One thread at a time.
class SignsOfLife {
 public:
  // ICMP port unreachable can be forged. Without a quoted request of the flow the peer counts as
  // dead only after so many errors in a row, without a packet of the peer in between.
  static constexpr unsigned kMostUnreachable = 3;

  os::Time heard() const { return heard_; }
  // The peer was heard of just now.
  void hear(os::Time now) {
    heard_ = now;
    unreachable_ = 0;
  }
  // An ICMP port unreachable from the peer's host; `proven` when it quotes a request of the flow.
  // True when the peer counts as dead.
  bool count_unreachable(bool proven) { return proven || ++unreachable_ >= kMostUnreachable; }

 private:
  os::Time heard_{};
  unsigned unreachable_ = 0;  // since the peer was last heard of
};

}  // namespace weft::rdm
