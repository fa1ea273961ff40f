// SPDX-License-Identifier: BSD-2-Clause
// What do the endpoints of one port share?
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "device/engine.h"
#include "device/engine_uses.h"
#include "device/exclusive_engine.h"
#include "messaging/busy_flows.h"
#include "messaging/check_timer.h"
#include "messaging/endpoint_port.h"
#include "messaging/endpoint_setup.h"
#include "messaging/sleepers.h"
#include "messaging/source_router.h"
#include "os/optional_lock.h"
#include "os/origin.h"
#include "os/udp_port.h"

namespace weft::messaging {

class Endpoint;

// A port, the lock of its endpoints and the engine that drives them: one poll takes in what has
// arrived for all of them, and visits those only that have something to do. An endpoint of
// datagrams has such a port to itself; connected endpoints may share one.
class SharedPort final : public device::Engine {
 public:
  // A port for the endpoint of that setup; that of a connected one may have others that it
  // serves(). `port` is kept then, so that no other port gets its number. Errors: those of
  // device::Port::open().
  static Result<std::shared_ptr<SharedPort>> open(
      const EndpointSetup& setup, const std::optional<os::UdpPort>& port = std::nullopt);

  // True when the endpoint of that setup could share this port: its receives, completion queue,
  // address, domain and all that peers are told of it are the same.
  bool serves(const EndpointSetup& setup) const;

  // True for a port that open() was given.
  bool keeps_address() const { return reserved_.has_value(); }
  // One thread at a time in all endpoints of the port; that of their receives if these are shared.
  OptionalLock& lock() { return lock_; }
  // Where the messages of all endpoints arrive.
  EndpointPort& main() { return main_; }
  Sleepers& sleepers() { return sleepers_; }
  BusyFlows& busy() { return busy_; }
  // Which groups, registries and threads drive it for its endpoints. Any thread.
  device::EngineUses& uses() { return uses_; }
  // The engine for threads that come through the biased lock, if there is one (ExclusiveEngine).
  device::Engine& for_foreign_threads();

  // An endpoint comes, and goes: control calls.
  void join(Endpoint& endpoint);
  void leave(Endpoint& endpoint);

  // All else with the lock held. The next polls visit an endpoint, until it has nothing to do.
  void visit(Endpoint& endpoint);
  // Takes no more in for an endpoint that closes: true when no peer writes into buffers of its
  // receives any more.
  bool withdraw(Endpoint& endpoint);
  // Counts a poll that has taken nothing in, and checks the peers when they are to be checked.
  void check_when_due() {
    if (timer_.count_poll()) [[unlikely]]
      check_if_it_is_time();
  }
  // Has the ends of all peers' processes, and of times of connections, wake sleepers, if there are
  // any.
  void watch_connections();
  // As progress().
  void progress_inside();

  void progress() override;
  bool fall_asleep() override;
  void wake_up() override;
  int wake_fd() const override { return main_.port->wake_set().fd(); }
  unsigned polls() override { return timer_.polls(); }

 private:
  SharedPort(const EndpointSetup& setup, EndpointPort main);
  std::size_t peers() const;
  void begin_visits();
  void end_visits();
  void check_if_it_is_time();
  void check(bool at_once);
  bool watch_processes();

  const EndpointSetup setup_;  // of the first endpoint
  const os::Origin origin_;
  std::optional<os::UdpPort> reserved_;
  OptionalLock own_lock_;
  OptionalLock& lock_;
  EndpointPort main_;
  std::unique_ptr<SourceRouter> router_;
  Sleepers sleepers_;
  BusyFlows busy_;
  CheckTimer timer_;
  std::vector<Endpoint*> endpoints_;
  std::vector<Endpoint*> visits_;  // to be visited by the next poll
  device::EngineUses uses_;
  std::optional<device::ExclusiveEngine> exclusive_;  // if there is a biased lock
};

}  // namespace weft::messaging
