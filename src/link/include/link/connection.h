// SPDX-License-Identifier: BSD-2-Clause
// How is a connection with one peer made, and how does it end? (fi_cm(3), IBTA chapter 12)
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/request_credits.h"
#include "base/result.h"
#include "link/flow.h"
#include "os/socket_address.h"

namespace weft::link {

// Private data of a program that go with a request, its acceptance or its rejection.
inline constexpr std::size_t kMaxConnectionData = 256;

// By which a port names its connections and the requests that it has received. 0: none.
using ConnectionNumber = std::uint32_t;

// A REQ that a listener has received. Each port of this host may accept it.
struct ConnectionRequest {
  os::SocketAddress peer;          // the requesting port, which data come from
  bool within_host = false;        // it has come through the mailbox
  std::vector<std::byte> message;  // the REQ as it has arrived, for accept()
  std::vector<std::byte> data;     // of the requesting program
  os::SocketAddress asked = {};    // the address of this host that it was sent to, or empty
  std::shared_ptr<RequestCredits> credits = nullptr;  // of the port that has received it
  bool delayed = false;  // its listener has closed, and has asked the requester for time
};

// The user of one end of a connection. Called from within polls, checks of sources and calls of
// Connections.
class ConnectionUser {
 public:
  // The connection is established. The peer sends as that source of the inbox, from now on; `flow`
  // leads to it. `data` came with the acceptance.
  virtual void connected(std::uint32_t source, std::shared_ptr<Flow> flow,
                         std::span<const std::byte> data) = 0;
  // The end of an attempt: ECONNREFUSED (no listener is there, or it rejects, then with `data`),
  // ETIMEDOUT, ECONNABORTED (the requester is gone or has withdrawn), ECONNRESET (the acceptor is
  // gone).
  virtual void failed(int error, std::span<const std::byte> data) = 0;
  // The end of an established connection: all that the peer has sent was handed over before.
  virtual void ended() = 0;

 protected:
  ~ConnectionUser() = default;
};

// The user of a listener. Called as a ConnectionUser.
class ListenerUser {
 public:
  // To be answered by reject() or forward().
  virtual void requested(ConnectionNumber number, ConnectionRequest request) = 0;
  // That request has ended: withdrawn by its sender, displaced by younger ones, or too old.
  virtual void withdrawn(ConnectionNumber number) = 0;

 protected:
  ~ListenerUser() = default;
};

// The connections of a port over one link. The number of an attempt that has failed, or of a
// connection that has ended, means none any more. Users outlive their connections. One thread at a
// time; all functions may be called by users.
class Connections {
 public:
  virtual ~Connections() = default;

  // Asks the listener at an address for a connection. Errors: those of finding a way to it, EINVAL
  // for too long data, EUSERS.
  virtual Result<ConnectionNumber> request(const os::SocketAddress& listener,
                                           std::span<const std::byte> data,
                                           ConnectionUser& user) = 0;
  // Accepts a request that a listener of this host has received; on success the listener's port
  // must forward() it. Errors: as request(), ENOENT when its sender is gone, and EALREADY (within a
  // host: ENOENT) when it is accepted already.
  virtual Result<ConnectionNumber> accept(const ConnectionRequest& request,
                                          std::span<const std::byte> data,
                                          ConnectionUser& user) = 0;
  // Rejects a request that a listener of this host has received, in place of accepting it.
  virtual void reject(const ConnectionRequest& request) = 0;
  // Ends a connection in any state. A DREQ is sent when the peer has all that was sent; no further
  // function of the user is called.
  virtual void disconnect(ConnectionNumber number) = 0;

  // Requests for this port are reported to `user`. At most `backlog` of them are undecided: beyond
  // that the oldest ends. Errors: EADDRINUSE.
  virtual Status listen(std::size_t backlog, ListenerUser& user) = 0;
  virtual void set_backlog(std::size_t backlog) = 0;
  // Answers an undecided request. Nothing happens for one that has ended.
  virtual void reject(ConnectionNumber request, std::span<const std::byte> data) = 0;
  // Asks the sender of an undecided request for 34 s without a repetition: this port will close,
  // and another one may accept it.
  virtual void delay(ConnectionNumber request) = 0;
  // Another port answers that request: this one takes no notice of its repetitions.
  virtual void forward(ConnectionNumber request) = 0;
};

}  // namespace weft::link
