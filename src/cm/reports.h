// SPDX-License-Identifier: BSD-2-Clause
// What is to be reported?
#pragma once

#include <deque>
#include <memory>
#include <optional>
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
  // Reports all, or those of one carrier's connections; also those that are added meanwhile.
  void deliver(std::optional<Carrier> carrier);
  bool has_any(std::optional<Carrier> carrier) const;

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
