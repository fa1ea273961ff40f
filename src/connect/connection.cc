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

bool Connection::connect(const os::SocketAddress& listener, ConnectData data, os::Time now) {
  if (state_ != ConnectionState::kIdle) return false;
  state_ = ConnectionState::kRequesting;
  asked_ = true;
  origin_ = new_token();
  border_.expect(origin_);
  deadline_ = now + patience_;
  int error = border_.reach(listener);
  if (error == 0)
    error =
        border_.send_control({ConnectKind::kRequest, origin_, 0, border_.name(), std::move(data)});
  if (error != 0) fail(connection_error(error, ECONNREFUSED));
  return true;
}

bool Connection::accept(const Request& request, ConnectData data) {
  if (state_ != ConnectionState::kIdle) return false;
  state_ = ConnectionState::kAccepting;
  origin_ = request.token;
  target_ = new_token();
  border_.expect(target_);
  int error = border_.reach(request.name);
  if (error == 0)
    error = border_.send_control(
        {ConnectKind::kReply, origin_, target_, border_.name(), std::move(data)});
  if (error != 0) fail(connection_error(error, ECONNABORTED));
  return true;
}

// Without room for the message the peer detects the closed flow.
bool Connection::shut_down() {
  const bool connected = state_ == ConnectionState::kConnected;
  if (connected) border_.send_control({ConnectKind::kFarewell, origin_, target_, {}, {}});
  state_ = ConnectionState::kEnded;
  return connected;
}

void Connection::fail(int error, std::span<const std::byte> data) {
  state_ = ConnectionState::kEnded;
  border_.failed(error, data);
}

// True for a message of the peer of this connection: it carries the tokens.
bool Connection::is_for_us(const ConnectMessage& message) const {
  if (origin_ == 0 || message.origin != origin_) return false;
  switch (message.kind) {
    case ConnectKind::kRequest:
      return false;
    case ConnectKind::kPending:
    case ConnectKind::kReject:
      return asked_;
    case ConnectKind::kReply:
      return asked_ && (target_ == 0 || message.target == target_);
    case ConnectKind::kReady:
      return !asked_ && message.target == target_;
    case ConnectKind::kFarewell:
      return message.target == target_;
  }
  return false;
}

void Connection::hear(std::uint32_t source, std::span<const std::byte> bytes) {
  const auto message = decode(bytes);
  if (!message || !is_for_us(*message) || state_ == ConnectionState::kEnded) {
    return border_.reject_source(source);
  }
  switch (message->kind) {
    case ConnectKind::kRequest:
      return;  // for listeners only
    case ConnectKind::kPending:
      return hear_pending();
    case ConnectKind::kReject:
      return hear_reject(*message);
    case ConnectKind::kReply:
      return hear_reply(source, *message);
    case ConnectKind::kReady:
      return hear_ready(source);
    case ConnectKind::kFarewell:
      return hear_farewell();
  }
}

void Connection::hear_pending() {
  if (state_ != ConnectionState::kRequesting) return;
  state_ = ConnectionState::kPending;
  deadline_ = os::Time::max();  // a program may take its time
}

void Connection::hear_reject(const ConnectMessage& message) {
  if (state_ != ConnectionState::kRequesting && state_ != ConnectionState::kPending) return;
  fail(ECONNREFUSED, message.data);
}

void Connection::hear_reply(std::uint32_t source, const ConnectMessage& message) {
  if (state_ != ConnectionState::kRequesting && state_ != ConnectionState::kPending) return;
  target_ = message.target;
  int error = border_.reach(message.name);
  if (error == 0) error = border_.send_control({ConnectKind::kReady, origin_, target_, {}, {}});
  if (error != 0) {
    border_.reject_source(source);  // tells the acceptor
    return fail(connection_error(error, ECONNRESET));
  }
  state_ = ConnectionState::kConnected;
  border_.accept_source(source);
  border_.connected(message.data);
}

void Connection::hear_ready(std::uint32_t source) {
  if (state_ != ConnectionState::kAccepting) return;
  state_ = ConnectionState::kConnected;
  border_.accept_source(source);
  border_.connected({});
}

void Connection::hear_farewell() {
  if (state_ != ConnectionState::kConnected) return;
  state_ = ConnectionState::kEnded;
  border_.parted();
}

void Connection::lose(bool died, os::Time now) {
  switch (state_) {
    case ConnectionState::kIdle:
    case ConnectionState::kEnded:
      return;
    case ConnectionState::kRequesting:
      return fail(ECONNREFUSED);
    case ConnectionState::kPending:
      // The endpoint that is to answer may have been opened before its listener was closed.
      if (died) return fail(ECONNREFUSED);
      deadline_ = now + patience_;
      return;
    case ConnectionState::kAccepting:
      return fail(ECONNABORTED);
    case ConnectionState::kConnected:
      state_ = ConnectionState::kEnded;
      return border_.parted();
  }
}

void Connection::tick(os::Time now) {
  switch (state_) {
    case ConnectionState::kIdle:
    case ConnectionState::kAccepting:
    case ConnectionState::kConnected:
    case ConnectionState::kEnded:
      return;
    case ConnectionState::kRequesting:
    case ConnectionState::kPending:
      if (now >= deadline_) fail(ETIMEDOUT);
      return;
  }
}

}  // namespace weft::connect
