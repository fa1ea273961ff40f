// SPDX-License-Identifier: BSD-2-Clause
// How does a connected endpoint come by its one peer, and how does it part from it?
#include "messaging/connected_peer.h"

#include <array>
#include <cstring>
#include <utility>

#include "messaging/endpoint.h"
#include "os/clock.h"

namespace weft::messaging {

int ConnectedPeer::open_way(const os::SocketAddress& peer) {
  auto way = endpoint_.at().port->connect(peer, true);
  if (!way) return way.error().code;
  facing_ = std::move(way).value();
  return 0;
}

int ConnectedPeer::open_path(const os::SocketAddress& peer) {
  facing_.reset();
  int error = open_way(peer);
  if (error != 0 && endpoint_.move_for(peer, error)) error = open_way(peer);
  if (error == 0 && shared_.sleepers().count() > 0) watch_process();
  return error;
}

void ConnectedPeer::expect(std::uint64_t number) {
  if (shared_.router() == nullptr) return;
  if (expected_ != 0) shared_.router()->forget(expected_);
  expected_ = number;
  if (number != 0) shared_.router()->expect(number, *this);
}

void ConnectedPeer::part_later() {
  parting_is_due_ = true;
  shared_.visit(endpoint_);
}

// The peer hears of it by its flow, which is refused, and by the end of the source.
void ConnectedPeer::withdraw() {
  expect(0);
  sink_ = nullptr;
  parting_is_due_ = awaits_peer_ = false;
  source_.reset();
  // Whether or not it counts as the peer still: what it sends finds no receiver any more.
  const auto& senders = endpoint_.at().senders;
  const bool open = bound_ < senders.size() && senders[bound_] != nullptr;
  if (open && senders[bound_]->receiver == &receiver_) endpoint_.at().refuse(bound_);
}

int ConnectedPeer::send_control(std::span<const std::byte> message) {
  link::Flow* way = facing_ == nullptr ? flows_.only() : facing_.get();
  if (way == nullptr) return ENOTCONN;
  const LocalRange piece{const_cast<std::byte*>(message.data()), message.size()};
  link::SendRequest request;
  request.operation = link::MessageOperation::kControl;
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
      return EAGAIN;
  }
  return EINVAL;
}

void ConnectedPeer::accept_source(std::uint32_t number) {
  const auto& senders = endpoint_.at().senders;
  if (facing_ == nullptr || number >= senders.size() || senders[number] == nullptr) return;
  source_ = senders[number];
  bound_ = number;
  receiver_.bind(*source_);
  source_->admitted = true;
  flows_.set_only(std::move(facing_));
}

bool ConnectedPeer::reached() {
  const link::Flow* const flow = flows_.only();
  awaits_peer_ = flow != nullptr && !flow->reached();
  if (awaits_peer_) shared_.visit(endpoint_);
  return !awaits_peer_;
}

void ConnectedPeer::reject_source(std::uint32_t source) { endpoint_.at().refuse(source); }

void ConnectedPeer::disconnect(int error) {
  sender_.report_losses_as(error);
  if (facing_ != nullptr) facing_->give_up(sender_);
  facing_.reset();
  flows_.end_only();
  if (source_ != nullptr) std::exchange(source_, nullptr)->admitted = false;
  receiver_.end(ESHUTDOWN, error);
}

void ConnectedPeer::part() {
  parting_is_due_ = false;
  sink_->parting_is_due();
}

void ConnectedPeer::watch_process() {
  if (facing_ != nullptr) shared_.sleepers().watch(facing_->process());
}

// A source that begins with a control message takes this for a connected endpoint. Where it is not
// one, nothing of that source may be taken for a datagram.
void ConnectedPeer::hear(const link::Arrival& arrival) {
  const bool legible = arrival.payload != nullptr && arrival.length <= kMaxControlBytes;
  const EndpointPort& port = endpoint_.at();
  if (sink_ == nullptr || !legible) return port.refuse(arrival.source);
  if (arrival.wants_ack) port.inbox().acknowledge(arrival.offer);
  std::array<std::byte, kMaxControlBytes> copy;  // the sender may write on
  if (arrival.length != 0) std::memcpy(copy.data(), arrival.payload, arrival.length);
  sink_->heard(arrival.source, {copy.data(), arrival.length});
}

void ConnectedPeer::lose_source(bool died) {
  source_.reset();
  sink_->lost(died);
}

// The way may be gone before the peer's last words have been read.
void ConnectedPeer::check() {
  if (sink_ == nullptr) return;
  sink_->tick(os::coarse_now());
  if (facing_ != nullptr) {
    if (facing_->check_peer(sender_) == link::PeerState::kAlive) return;
    const EndpointPort& port = endpoint_.at();
    port.poll();
    port.inbox().check_sources(*port.sink);
    if (facing_ == nullptr) return;
    const link::PeerState state = facing_->check_peer(sender_);
    if (state == link::PeerState::kAlive) return;  // another way by now
    facing_.reset();
    sink_->lost(state == link::PeerState::kDied);
    return;
  }
  // A peer that takes no messages any more has gone, even if some of its own are still to come.
  if (source_ == nullptr || flows_.only() != nullptr) return;
  endpoint_.at().poll();
  if (source_ != nullptr) lose_source(true);
}

}  // namespace weft::messaging
