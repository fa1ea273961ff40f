// SPDX-License-Identifier: BSD-2-Clause
// What is the same for all flows of datagrams?
#pragma once

#include <cerrno>

#include "link/flow.h"

namespace weft::link {

// A flow whose messages are on their way, or lost, when send() returns: none of its requests is
// pending, and it knows of no process.
class UnreliableFlow : public Flow {
 public:
  Outcome access(const AccessRequest&) final { return Outcome::failed(EOPNOTSUPP); }
  Outcome atomic(const AtomicRequest&) final { return Outcome::failed(EOPNOTSUPP); }
  bool busy() const final { return false; }
  bool ready() const override { return false; }
  void progress(FlowSink&) override {}
  void give_up(FlowSink&) final {}
  int process() const final { return 0; }
  void set_asleep(bool) final {}
};

}  // namespace weft::link
