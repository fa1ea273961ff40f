// SPDX-License-Identifier: BSD-2-Clause
// How is one end of a connection made, and how does it end?
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "connect/message.h"
#include "os/clock.h"

namespace weft::connect {

// A request for a connection, as it came to a listener.
struct Request {
  os::SocketAddress name;  // of the requesting endpoint
  Token token = 0;
  ConnectData data;
};

// The endpoint of a Connection, and the sink of its events. Called from within functions of
// Connection only; must not call Connection.
class Border {
 public:
  virtual ~Border() = default;
  // Opens the flow to `peer`, in place of an earlier one. An errno, or 0.
  virtual int reach(const os::SocketAddress& peer) = 0;
  // The address of this endpoint for peers, after reach().
  virtual os::SocketAddress name() = 0;
  // Messages that name this token as their addressee are for this end from now on.
  virtual void expect(Token token) = 0;
  // Sends a message over that flow, reliably and in order. An errno, or 0.
  virtual int send_control(const ConnectMessage& message) = 0;
  // Source `source` and the reached address are the peer: data may flow.
  virtual void accept_source(std::uint32_t source) = 0;
  // Messages of `source` are refused.
  virtual void reject_source(std::uint32_t source) = 0;

  // The connection is made; `data` came with the reply.
  virtual void connected(std::span<const std::byte> data) = 0;
  // The connection is not made: ECONNREFUSED (no listener there, or rejected, then with `data`),
  // ETIMEDOUT, ECONNABORTED (the requester is gone), ECONNRESET (the acceptor is gone), or the
  // error of reach().
  virtual void failed(int error, std::span<const std::byte> data) = 0;
  // The peer has ended the connection.
  virtual void parted() = 0;
};

enum class ConnectionState {
  kIdle,
  kRequesting,  // request sent; no answer of the listener yet
  kPending,     // the listener's program has the request
  kAccepting,   // reply sent; not acknowledged yet
  kConnected,
  kEnded,  // it has failed, or is over
};

// The state machine of one end. One thread at a time.
class Connection {
 public:
  // `patience`: how long a request waits for the
  // listener's first answer, and for the final one once the listener is closed.
  Connection(Border& border, std::chrono::milliseconds patience)
      : border_(border), patience_(patience) {}

  ConnectionState state() const { return state_; }

  // Calls of the program. False, and nothing happens, in any other state than kIdle.
  bool connect(const os::SocketAddress& listener, ConnectData data, os::Time now);
  bool accept(const Request& request, ConnectData data);
  // Ends the connection from this side, in any state, without an event. True when it was connected.
  bool shut_down();

  // A control message of `source`.
  void hear(std::uint32_t source, std::span<const std::byte> bytes);
  // The flow to the peer has ended. `died`: because its process has.
  void lose(bool died, os::Time now);
  void tick(os::Time now);

 private:
  bool is_for_us(const ConnectMessage& message) const;
  void hear_pending();
  void hear_reject(const ConnectMessage& message);
  void hear_reply(std::uint32_t source, const ConnectMessage& message);
  void hear_ready(std::uint32_t source);
  void hear_farewell();
  void fail(int error, std::span<const std::byte> data = {});

  Border& border_;
  const std::chrono::milliseconds patience_;
  ConnectionState state_ = ConnectionState::kIdle;
  bool asked_ = false;  // this end sent the request
  Token origin_ = 0;
  Token target_ = 0;  // 0 until it is known
  os::Time deadline_ = os::Time::max();
};

}  // namespace weft::connect
