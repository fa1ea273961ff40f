// SPDX-License-Identifier: BSD-2-Clause
// How does a connected endpoint come by its one peer, and how does it part from it?
#include <array>
#include <cstring>
#include <utility>

#include "messaging/endpoint.h"

namespace weft::messaging {

int Endpoint::open_path(const os::SocketAddress& peer) {
  facing_.reset();
  auto way = port_->connect(peer, true);
  if (!way) return way.error().code;
  facing_ = std::move(way).value();
  if (sleepers_ > 0) watch_processes();
  return 0;
}

int Endpoint::send_control(std::span<const std::byte> message) {
  link::Flow* way = facing_ == nullptr && !peers_.empty() ? peers_[0].flow.get() : facing_.get();
  if (way == nullptr) return ENOTCONN;
  const LocalRange piece{const_cast<std::byte*>(message.data()), message.size()};
  link::SendRequest request;
  request.operation = link::Operation::kControl;
  request.must_copy = true;
  request.pieces = {&piece, 1};
  request.length = message.size();
  const link::Outcome outcome = way->send(request);
  switch (outcome.state) {
    case link::Outcome::State::kDone:
      return 0;
    case link::Outcome::State::kFailed:
      return outcome.error;
    case link::Outcome::State::kPending:  // never: it is copied
    case link::Outcome::State::kAgain:
    case link::Outcome::State::kTooSoon:
      return EAGAIN;
  }
  return EINVAL;
}

void Endpoint::accept_source(std::uint32_t source) {
  if (facing_ == nullptr || source >= sources_.size() || sources_[source] == nullptr) return;
  peer_source_ = sources_[source];
  peer_source_->admitted = true;
  peers_.resize(1);
  peers_[0].flow = std::move(facing_);
}

bool Endpoint::peer_reached() {
  awaits_peer_ = !peers_.empty() && peers_[0].flow != nullptr && !peers_[0].flow->reached();
  return !awaits_peer_;
}

void Endpoint::reject_source(std::uint32_t source) { port_->inbox().refuse(*this, source); }

void Endpoint::disconnect(int error) {
  parting_error_ = error;
  ended_ = ESHUTDOWN;
  if (facing_ != nullptr) facing_->give_up(*this);
  facing_.reset();
  if (!peers_.empty()) lose(peers_[0]);
  if (peer_source_ != nullptr) std::exchange(peer_source_, nullptr)->admitted = false;
  if (own_queue_ == nullptr) return;  // others may have messages for those receives
  queue_.ended_ = ended_;
  fail_waiting(kNoPeer, error);
}

// A source that begins with a control message takes this for a connected endpoint. Where it is not
// one, nothing of that source may be taken for a datagram.
void Endpoint::control(const link::Arrival& arrival) {
  const bool legible = arrival.payload != nullptr && arrival.length <= kMaxControlBytes;
  if (setup_.connection == nullptr || !legible) {
    return port_->inbox().refuse(*this, arrival.source);
  }
  if (arrival.wants_ack) port_->inbox().acknowledge(arrival.offer);
  std::array<std::byte, kMaxControlBytes> copy;  // the sender may write on
  if (arrival.length != 0) std::memcpy(copy.data(), arrival.payload, arrival.length);
  setup_.connection->heard(arrival.source, {copy.data(), arrival.length});
}

void Endpoint::connection_lost(bool died) {
  peer_source_.reset();
  setup_.connection->lost(died);
}

// The way may be gone before the peer's last words have been read.
void Endpoint::check_connection() {
  setup_.connection->tick(os::coarse_now());
  if (facing_ != nullptr) {
    if (facing_->check_peer(*this) == link::PeerState::kAlive) return;
    port_->inbox().poll(*this);
    port_->inbox().check_sources(*this);
    if (facing_ == nullptr) return;
    const link::PeerState state = facing_->check_peer(*this);
    if (state == link::PeerState::kAlive) return;  // another way by now
    facing_.reset();
    setup_.connection->lost(state == link::PeerState::kDied);
    return;
  }
  // A peer that takes no messages any more has gone, even if some of its own are still to come.
  if (peer_source_ == nullptr || peers_[0].flow != nullptr) return;
  port_->inbox().poll(*this);
  if (peer_source_ != nullptr) connection_lost(true);
}

}  // namespace weft::messaging
