// SPDX-License-Identifier: BSD-2-Clause
// Which requests of its host has a listener not decided yet?
#pragma once

#include <map>
#include <vector>

#include "cm/agent.h"
#include "mad_outbox.h"
#include "os/clock.h"
#include "os/socket_address.h"

namespace weft::device {

// The requests that a listener has received as management datagrams and has not answered. A
// datagram carries no sign of its sender's end, so the mailbox of the sender is checked. One thread
// at a time.
class UndecidedRequests {
 public:
  void add(cm::ConnectionId id, const os::SocketAddress& from, os::Time now) {
    requests_[id] = {from, now};
  }
  // Removes those whose requester has no mailbox any more, and returns them. Checks each at most
  // once in 100 ms, and at most 64 in one call. Forgets those that are decided.
  std::vector<cm::ConnectionId> remove_abandoned(const cm::Agent& agent, MadOutbox& mads,
                                                 os::Time now);

 private:
  struct UndecidedEntry {
    os::SocketAddress from;
    os::Time looked_at;
  };

  std::map<cm::ConnectionId, UndecidedEntry> requests_;
  cm::ConnectionId last_ = 0;  // whose requester was looked for last
};

}  // namespace weft::device
