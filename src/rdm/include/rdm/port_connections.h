// SPDX-License-Identifier: BSD-2-Clause
// How does a port make the connections of programs, by whichever link leads to the peer?
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

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

// The connections of a port, and its listener. The number of an attempt that has failed, or of a
// connection that has ended, means none any more. Users outlive their connections. One thread at a
// time; all functions may be called by users.
class PortConnections final : cm::User {
 public:
  // `agent` is the manager of the port at that UDP port. It has one link or both, which outlive
  // this: one within the host, and one over the network.
  PortConnections(cm::Agent& agent, std::uint16_t port, LinkConnections* same_host,
                  LinkConnections* remote)
      : agent_(agent), port_(port), same_host_(same_host), remote_(remote) {}

  // Asks the listener at an address for a connection. Errors: those of finding a way to it, EINVAL
  // for too long data, EUSERS.
  Result<link::ConnectionNumber> request(const os::SocketAddress& listener,
                                         std::span<const std::byte> data,
                                         link::ConnectionUser& user);
  // Accepts a request that a listener of this host has received; on success the listener's port
  // must forward() it. Errors: as request(), ENOENT when its sender is gone, and EALREADY (within a
  // host: ENOENT) when it is accepted already.
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
  void stop_listening() { agent_.stop(listener_, now()); }

 private:
  void handle(const cm::CmEvent& event) override;
  Time last_received(cm::ConnectionId, void*) override { return {}; }

  LinkConnections* link_of(const link::ConnectionRequest& request) const {
    return request.within_host ? same_host_ : remote_;
  }
  os::Time now() const { return (remote_ != nullptr ? remote_ : same_host_)->now(); }

  cm::Agent& agent_;
  const std::uint16_t port_;
  LinkConnections* const same_host_;
  LinkConnections* const remote_;
  cm::ListenerId listener_ = 0;
  link::ListenerUser* user_ = nullptr;
};

}  // namespace weft::rdm
