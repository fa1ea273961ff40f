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
#include "wire/cm_message.h"

namespace weft::link {

// Private data of a program that go with a request, its acceptance or its rejection.
inline constexpr std::size_t kMaxConnectionData = 256;

// By which a port names its connections and the requests that it has received. 0: none.
using ConnectionNumber = std::uint32_t;

// A REQ that a listener has received. Each port of this host may accept it.
struct ConnectionRequest {
  os::SocketAddress peer;        // the requesting port, which data come from
  bool within_host = false;      // it has come through the mailbox
  wire::CmMad req;               // for accept()
  std::vector<std::byte> data;   // of the requesting program
  os::SocketAddress asked = {};  // the address of this host that it was sent to, or empty
  std::shared_ptr<RequestCredits> credits = nullptr;  // of the port that has received it
  bool delayed = false;  // its listener has closed, and has asked the requester for time
};

// The user of one end of a connection. Called from within polls, checks of sources and calls that
// concern connections.
class ConnectionUser {
 public:
  // The connection is established. The peer sends as that source of the inbox, from now on; `flow`
  // leads to it. `data` came with the acceptance.
  virtual void connected(std::uint32_t source, std::shared_ptr<Flow> flow,
                         std::span<const std::byte> data) = 0;
  // The end of an attempt: ECONNREFUSED (no listener is there, or it rejects, then with `data`),
  // ETIMEDOUT, ECONNABORTED (the requester is gone or has withdrawn), ECONNRESET (the acceptor is
  // gone), EACCES (requester and acceptor have different authorization keys).
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

}  // namespace weft::link
