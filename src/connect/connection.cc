// SPDX-License-Identifier: BSD-2-Clause
// How is one end of a connection made, and how does it end?
#include "connect/connection.h"

#include <cerrno>
#include <utility>

namespace weft::connect {
namespace {

// The error of a connection for an error of reach(): `gone` when there is no such endpoint. A
// process that is ending answers EPERM.
int connection_error(int error, int gone) {
  return error == ENOENT || error == EPERM || error == ECONNRESET ? gone : error;
}

}  // namespace

bool Connection::connect(const os::SocketAddress& name, const os::SocketAddress& listener,
                         Bytes data, os::Time now) {
  if (state_ != State::kIdle) return false;
  state_ = State::kRequesting;
  asked_ = true;
  name_ = name;
  origin_ = new_token();
  deadline_ = now + patience_;
  int error = border_.reach(listener);
  if (error == 0)
    error = border_.send_control({Kind::kRequest, origin_, 0, name_, std::move(data)});
  if (error != 0) fail(connection_error(error, ECONNREFUSED));
  return true;
}

bool Connection::accept(const os::SocketAddress& name, const Request& request, Bytes data) {
  if (state_ != State::kIdle) return false;
  state_ = State::kAccepting;
  name_ = name;
  origin_ = request.token;
  target_ = new_token();
  int error = border_.reach(request.name);
  if (error == 0)
    error = border_.send_control({Kind::kReply, origin_, target_, name_, std::move(data)});
  if (error != 0) fail(connection_error(error, ECONNABORTED));
  return true;
}

// Without room for the message the peer detects the closed flow.
bool Connection::shut_down() {
  const bool connected = state_ == State::kConnected;
  if (connected) border_.send_control({Kind::kFarewell, origin_, target_, {}, {}});
  state_ = State::kEnded;
  return connected;
}

void Connection::fail(int error, std::span<const std::byte> data) {
  state_ = State::kEnded;
  border_.failed(error, data);
}

// True for a message of the peer of this connection: it carries the tokens.
bool Connection::is_for_us(const Message& message) const {
  if (origin_ == 0 || message.origin != origin_) return false;
  switch (message.kind) {
    case Kind::kRequest:
      return false;
    case Kind::kPending:
    case Kind::kReject:
      return asked_;
    case Kind::kReply:
      return asked_ && (target_ == 0 || message.target == target_);
    case Kind::kReady:
      return !asked_ && message.target == target_;
    case Kind::kFarewell:
      return message.target == target_;
  }
  return false;
}

void Connection::hear(std::uint32_t source, std::span<const std::byte> bytes) {
  const auto message = decode(bytes);
  if (!message || !is_for_us(*message) || state_ == State::kEnded) {
    return border_.reject_source(source);
  }
  switch (message->kind) {
    case Kind::kRequest:
      return;  // for listeners only
    case Kind::kPending:
      return hear_pending();
    case Kind::kReject:
      return hear_reject(*message);
    case Kind::kReply:
      return hear_reply(source, *message);
    case Kind::kReady:
      return hear_ready(source);
    case Kind::kFarewell:
      return hear_farewell();
  }
}

void Connection::hear_pending() {
  if (state_ != State::kRequesting) return;
  state_ = State::kPending;
  deadline_ = os::Time::max();  // a program may take its time
}

void Connection::hear_reject(const Message& message) {
  if (state_ != State::kRequesting && state_ != State::kPending) return;
  fail(ECONNREFUSED, message.data);
}

void Connection::hear_reply(std::uint32_t source, const Message& message) {
  if (state_ != State::kRequesting && state_ != State::kPending) return;
  target_ = message.target;
  int error = border_.reach(message.name);
  if (error == 0) error = border_.send_control({Kind::kReady, origin_, target_, {}, {}});
  if (error != 0) {
    border_.reject_source(source);  // tells the acceptor
    return fail(connection_error(error, ECONNRESET));
  }
  state_ = State::kConnected;
  border_.accept_source(source);
  border_.connected(message.data);
}

void Connection::hear_ready(std::uint32_t source) {
  if (state_ != State::kAccepting) return;
  state_ = State::kConnected;
  border_.accept_source(source);
  border_.connected({});
}

void Connection::hear_farewell() {
  if (state_ != State::kConnected) return;
  state_ = State::kEnded;
  border_.parted();
}

void Connection::lose(bool died, os::Time now) {
  switch (state_) {
    case State::kIdle:
    case State::kEnded:
      return;
    case State::kRequesting:
      return fail(ECONNREFUSED);
    case State::kPending:
      // The endpoint that is to answer may have been opened before its listener was closed.
      if (died) return fail(ECONNREFUSED);
      deadline_ = now + patience_;
      return;
    case State::kAccepting:
      return fail(ECONNABORTED);
    case State::kConnected:
      state_ = State::kEnded;
      return border_.parted();
  }
}

void Connection::tick(os::Time now) {
  switch (state_) {
    case State::kIdle:
    case State::kAccepting:
    case State::kConnected:
    case State::kEnded:
      return;
    case State::kRequesting:
    case State::kPending:
      if (now >= deadline_) fail(ETIMEDOUT);
      return;
  }
}

}  // namespace weft::connect
