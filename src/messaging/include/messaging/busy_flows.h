// SPDX-License-Identifier: BSD-2-Clause
// Which flows of a port's endpoints have requests pending?
#pragma once

#include <vector>

#include "link/flow.h"

namespace weft::messaging {

// The flows that a poll goes on with, those of all endpoints of a port. Used with the port's lock
// held.
class BusyFlows {
 public:
  // Remembers that something is pending on a flow, whose ends `sink` hears.
  void add(link::Flow& flow, link::FlowSink& sink);
  // Forgets a flow, or all flows of a sink.
  void remove(const link::Flow& flow);
  void remove_all(const link::FlowSink& sink);
  // Goes on with what is pending, and forgets flows on which nothing is pending any more.
  void progress() {
    if (!flows_.empty()) progress_all();
  }
  // Withdraws the send of `cookie`, on a flow of that sink; false when it goes on
  // (link::Flow::cancel).
  bool cancel(void* cookie, link::FlowSink& sink);
  // Tells the peers of pending requests that this side sleeps, or is awake.
  void set_asleep(bool asleep);
  // True when progress() would find something to do.
  bool ready() const;

 private:
  struct BusyFlow {
    link::Flow* flow;
    link::FlowSink* sink;
  };

  void progress_all();

  std::vector<BusyFlow> flows_;
};

}  // namespace weft::messaging
