// SPDX-License-Identifier: BSD-2-Clause
// How does a port make the connections of programs, by whichever link leads to the peer?
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/authorization.h"
#include "base/result.h"
#include "cm/agent.h"
#include "link/connection.h"
#include "os/clock.h"

namespace weft::rdm {

// The connections of a port over one link, by their communication ids. One thread at a time.
class LinkConnections {
 public:
  // As those of PortConnections; `data` are not too long.
  virtual Result<link::ConnectionNumber> request(const os::SocketAddress& listener,
                                                 std::span<const std::byte> data,
                                                 link::ConnectionUser& user) = 0;
  virtual Result<link::ConnectionNumber> accept(const link::ConnectionRequest& request,
                                                std::span<const std::byte> data,
                                                link::ConnectionUser& user) = 0;
  // False when the link has no connection of that number.
  virtual bool disconnect(link::ConnectionNumber number) = 0;
  // A REQ or SIDR_REQ for the listener of the port: reports or refuses it.
  virtual void on_request(const cm::CmEvent& event, link::ListenerUser& listener) = 0;
  // Sends a message of the port's connection manager, as cm::CmHost::send() says.
  virtual void send(const os::SocketAddress& to, cm::ConnectionId id,
                    std::span<const std::byte> message) = 0;
  virtual os::Time now() = 0;

 protected:
  ~LinkConnections() = default;
};

// The connection manager of a port, its listener and its connections. The number of an attempt that
// has failed, or of a connection that has ended, means none any more. Users outlive their
// connections. One thread at a time; all functions may be called by users.
class PortConnections final : cm::CmHost, cm::User {
 public:
  // Random numbers that are unpredictable for any peer.
  using RandomSource = std::function<std::uint64_t()>;

  // `port` is the UDP port, `peer_timeout` that of cm::AgentOptions; `key` is the authorization key
  // that peers must have, or none.
  PortConnections(std::uint16_t port, std::chrono::nanoseconds peer_timeout, RandomSource random,
                  Stats& stats, AuthorizationPtr key = nullptr);
  // The port has that link, which ends before this does. There is one at the first connection.
  void attach(cm::Carrier carrier, LinkConnections& link) {
    links_[static_cast<std::size_t>(carrier)] = &link;
  }
  // Null when the port has no such link.
  LinkConnections* link_by(cm::Carrier carrier) const {
    return links_[static_cast<std::size_t>(carrier)];
  }
  const AuthorizationPtr& authorization() const { return authorization_; }
  // For users of single flows.
  cm::Agent& agent() { return agent_; }

  // Asks the listener at an address for a connection. Errors: those of finding a way to it, EINVAL
  // for too long data, EUSERS.
  Result<link::ConnectionNumber> request(const os::SocketAddress& listener,
                                         std::span<const std::byte> data,
                                         link::ConnectionUser& user);
  // Accepts a request that a listener of this host has received; on success the listener's port
  // must forward() it. Errors: as request(), ENOENT when its sender is gone, and EALREADY (within a
  // host: ENOENT) when it is accepted already, link::kOtherAuthorization when the requester has
  // another key: then it is rejected.
  Result<link::ConnectionNumber> accept(const link::ConnectionRequest& request,
                                        std::span<const std::byte> data,
                                        link::ConnectionUser& user);
  // Rejects a request that a listener of this host has received, in place of accepting it.
  void reject(const link::ConnectionRequest& request);
  // Ends a connection in any state. A DREQ is sent when the peer has all that was sent; no further
  // function of the user is called.
  void disconnect(link::ConnectionNumber number);

  // Requests for this port are reported to `user`. At most `backlog` of each link are undecided:
  // beyond that the oldest ends. Errors: EADDRINUSE.
  Status listen(std::size_t backlog, link::ListenerUser& user);
  void set_backlog(std::size_t backlog);
  // Answers an undecided request. Nothing happens for one that has ended.
  void reject(link::ConnectionNumber request, std::span<const std::byte> data);
  // Asks the sender of an undecided request over the network for 34 s without a repetition: this
  // port will close, and another one may accept it.
  void delay(link::ConnectionNumber request);
  // Another port answers that request: this one takes no notice of its repetitions.
  void forward(link::ConnectionNumber request);
  // Undecided requests are rejected, and the user hears of none any more.
  void stop_listening() {
    if (listener_ != 0) agent_.stop(listener_, now());
  }

 private:
  void send(const cm::Remote& to, cm::ConnectionId id, std::span<const std::byte> message) override;
  std::uint64_t random() override { return random_(); }
  void handle(const cm::CmEvent& event) override;
  Time last_received(cm::ConnectionId, void*) override { return {}; }

  LinkConnections& any_of(cm::Carrier first, cm::Carrier second) const {
    return *(link_by(first) != nullptr ? link_by(first) : link_by(second));
  }
  void refuse(const link::ConnectionRequest& request, std::span<const std::byte> data);
  os::Time now() const { return any_of(cm::Carrier::kPackets, cm::Carrier::kMailbox).now(); }

  const std::uint16_t port_;
  const RandomSource random_;
  const AuthorizationPtr authorization_;
  cm::Agent agent_;
  std::array<LinkConnections*, cm::kCarriers> links_{};
  cm::ListenerId listener_ = 0;
  link::ListenerUser* user_ = nullptr;
};

}  // namespace weft::rdm
