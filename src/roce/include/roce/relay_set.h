// SPDX-License-Identifier: BSD-2-Clause
// How do the endpoints of a process share UDP port 4791, the only one that foreign peers send to?
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/stats.h"
#include "os/event.h"
#include "os/socket_address.h"

namespace weft::roce {

class Port4791Relay;

// Events of the relays of a process, for the engine that polls in place of idle endpoints.
struct RelayActivity {
  std::function<void()> held;      // called when one of them has got a port, from within look()
  os::EventSet arrivals;           // readable while packets wait at a port
  std::atomic<unsigned> looks{0};  // of endpoints
};

// The relays of a process: one for each address that endpoints are bound to, from the first of
// them to the last. It holds port 4791 of that address if no other process does, and hands packets
// on to the endpoints that they name, of whatever process. Any thread.
class RelaySet {
 public:
  // `held` is called by any thread that looks or opens an endpoint, whenever a port was got; it
  // must not come back here. Packets are counted in `stats`, which outlives the relays.
  explicit RelaySet(Stats& stats, std::function<void()> held = {});

  // The one for endpoints at `address`, whose port does not matter.
  std::shared_ptr<Port4791Relay> at(const os::SocketAddress& address);

  // For the engine that polls in place of idle endpoints: forwards some dozens of packets,
  // also to endpoints of this process. True when there are more, of which wake_fd() may not tell.
  bool hand_on();
  // Readable while packets wait; -1 when that cannot be had.
  int wake_fd() const { return watch_->arrivals.fd(); }
  // Changes whenever an endpoint looks.
  unsigned looks() const { return watch_->looks.load(std::memory_order_relaxed); }

 private:
  const std::shared_ptr<RelayActivity> watch_;
  Stats& stats_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<Port4791Relay>> known_;  // by host
};

}  // namespace weft::roce
