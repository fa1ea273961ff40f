// SPDX-License-Identifier: BSD-2-Clause
// What is to be reported?
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "connection.h"
#include "messages.h"

namespace weft::cm {

// Events in their order, with the messages behind them.
class Reports {
 public:
  // `arrival` may be null. Nothing happens when the connection has no user.
  void add(const CmConnection& connection, EventKind kind, const CmArrival* arrival);
  // Removes the report of an undecided request. False when it has been delivered.
  bool drop_request(ConnectionId id);
  // Removes all events of a connection.
  void drop(ConnectionId id);
  // Those of undecided requests.
  void drop_of_listener(ListenerId listener);
  // Reports all, also those that are added meanwhile.
  void deliver();
  bool empty() const { return queue_.empty(); }

 private:
  struct EventMessage {
    wire::CmMad mad;
    std::vector<std::byte> more;
  };
  struct QueuedReport {
    User* user;
    CmEvent event;
    std::unique_ptr<EventMessage> content;
  };
  std::deque<QueuedReport> queue_;
};

}  // namespace weft::cm
