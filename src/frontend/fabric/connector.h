// SPDX-License-Identifier: BSD-2-Clause
// What makes an endpoint a connected one? fi_cm(3)
#pragma once

#include <rdma/fi_endpoint.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "base/usable.h"
#include "connect/listener.h"
#include "domain.h"
#include "eq.h"
#include "messaging/address_vector.h"
#include "messaging/endpoint.h"

namespace weft::fabric {

// Joins an endpoint, its connection and the event queue that gets its events. Any thread.
class Connector final : messaging::ConnectionSink {
 public:
  // For the endpoint `ep` of `domain`. With a request it is to accept that, else it may connect.
  Connector(struct fid& ep, Domain& domain, std::optional<connect::Request> request);
  // Gives a request back that was not decided, and rejects one whose acceptance failed at once; the
  // endpoint must not run any more. Without the listener a port of `host` rejects either.
  void decline(const os::SocketAddress& host);
  ~Connector() override;

  // fi_ep_bind(3). Errors: -FI_EINVAL for a second one.
  int bind(EventQueue& eq) { return eq_.bind(eq); }
  // Where events go; null before bind().
  EventQueue* eq() const { return eq_.get(); }
  // What an endpoint is set up with in place of an address vector.
  void set_up(messaging::EndpointSetup& setup);
  // Calls come from here on, and go to `core`.
  void start(messaging::Endpoint& core) { core_ = &core; }

  // fi_connect(3), fi_accept(3), fi_shutdown(3) of a running endpoint. Events report the outcome of
  // the first two. Errors: -FI_EOPBADSTATE when it is too late, or for the other side's call,
  // those of Domain::begin_control(); for shut_down(), -FI_ENOTCONN before either.
  int connect(const os::SocketAddress& listener, std::span<const std::byte> data);
  int accept(std::span<const std::byte> data);
  int shut_down();
  // fi_getpeer(3): the address that this end connected to, or that connected to it. Nothing before
  // that.
  std::optional<os::SocketAddress> peer();

 private:
  enum class ConnectorState : std::uint8_t { kIdle, kAttempted, kConnected, kEnded };

  void connected(std::span<const std::byte> data) override;
  void failed(int error, std::span<const std::byte> data) override;
  void parted() override;

  struct fid& ep_;
  Domain& domain_;
  BoundEventQueue eq_;
  messaging::AddressVector no_addresses_{0};
  messaging::Endpoint* core_ = nullptr;
  // From here on all is the core's: used by one thread at a time, the one that is inside it.
  std::unique_ptr<connect::Request> request_;  // until it is decided: it is large
  std::optional<os::SocketAddress> peer_;
  ConnectorState state_ = ConnectorState::kIdle;
  bool rejected_ = false;  // the request, for the requester's authorization key
};

}  // namespace weft::fabric
