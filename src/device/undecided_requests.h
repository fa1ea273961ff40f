// SPDX-License-Identifier: BSD-2-Clause
// Which requests of its host has a listener not decided yet?
#pragma once

#include <map>
#include <vector>

#include "cm/event.h"
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
  // Decided. False when there was no such request.
  bool erase(cm::ConnectionId id) { return requests_.erase(id) != 0; }
  // Removes those whose requester has no mailbox any more. Checks each at most once in 100 ms, and
  // at most 64 in one call.
  std::vector<cm::ConnectionId> remove_abandoned(MadOutbox& mads, os::Time now);

 private:
  struct UndecidedEntry {
    os::SocketAddress from;
    os::Time looked_at;
  };

  std::map<cm::ConnectionId, UndecidedEntry> requests_;
  cm::ConnectionId last_ = 0;  // whose requester was looked for last
};

}  // namespace weft::device
