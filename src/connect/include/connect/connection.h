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
  os::SocketAddress name;  // of the endpoint that asks
  Token token = 0;
  Bytes data;
};

// What a Connection needs of the endpoint whose connection it is, and whom it reports to. Nothing
// of it is called but from within the functions of Connection, which none of it may call.
class Border {
 public:
  virtual ~Border() = default;
  // Opens the way to `peer`, in place of an earlier one. An errno, or 0.
  virtual int reach(const os::SocketAddress& peer) = 0;
  // Sends a message over that way, reliably and in order. An errno, or 0.
  virtual int send_control(const Message& message) = 0;
  // Takes who sent as `source`, and who is reached, for the peer: data may flow.
  virtual void accept_source(std::uint32_t source) = 0;
  // Whoever sends as `source` has no business here.
  virtual void reject_source(std::uint32_t source) = 0;

  // It is made; `data` came with the reply.
  virtual void connected(std::span<const std::byte> data) = 0;
  // It will not be made: ECONNREFUSED (nobody listens there, or it was rejected, then with `data`),
  // ETIMEDOUT, ECONNABORTED (who asked has gone), ECONNRESET (who accepted has gone), or why the
  // other end cannot be reached.
  virtual void failed(int error, std::span<const std::byte> data) = 0;
  // The peer has ended it.
  virtual void parted() = 0;
};

// The state machine of one end. One thread at a time.
class Connection {
 public:
  enum class State {
    kIdle,
    kRequesting,  // asked; the listener has not answered
    kPending,     // the listener's program has been told
    kAccepting,   // accepted; who asked has not heard of it yet
    kConnected,
    kEnded,  // it has failed, or is over
  };

  // `name`: by which peers know this endpoint. `patience`: how long a request waits for the
  // listener's first answer; and once that has closed its door, for the last one.
  Connection(Border& border, std::chrono::milliseconds patience)
      : border_(border), patience_(patience) {}

  State state() const { return state_; }

  // Calls of the program. False, and nothing happens, in any other state than kIdle.
  bool connect(const os::SocketAddress& name, const os::SocketAddress& listener, Bytes data,
               os::Time now);
  bool accept(const os::SocketAddress& name, const Request& request, Bytes data);
  // Ends it from this side, in any state; border is not told. True when it was connected.
  bool shut_down();

  // Bytes that whoever sends as `source` wants to say.
  void hear(std::uint32_t source, std::span<const std::byte> bytes);
  // Nobody is there any more at the other end of the way. `died`: its process ended.
  void lose(bool died, os::Time now);
  void tick(os::Time now);

 private:
  bool is_for_us(const Message& message) const;
  void hear_pending();
  void hear_reject(const Message& message);
  void hear_reply(std::uint32_t source, const Message& message);
  void hear_ready(std::uint32_t source);
  void hear_farewell();
  void fail(int error, std::span<const std::byte> data = {});

  Border& border_;
  const std::chrono::milliseconds patience_;
  State state_ = State::kIdle;
  bool asked_ = false;  // this end is the one that asked
  Token origin_ = 0;
  Token target_ = 0;  // 0 until it is known
  os::SocketAddress name_;
  os::Time deadline_ = os::Time::max();
};

}  // namespace weft::connect
