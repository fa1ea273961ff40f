// SPDX-License-Identifier: BSD-2-Clause
// How does a connected endpoint come by its one peer, and how does it part from it?
#include "messaging/connected_peer.h"

#include <utility>

#include "messaging/endpoint.h"

namespace weft::messaging {
namespace {

// The error of an attempt for that of finding a way: `absent` when there is no such port. A process
// that is ending answers EPERM.
int attempt_error(int error, int absent) {
  if (error == link::kOtherAuthorization) return EACCES;
  return error == ENOENT || error == EPERM || error == ECONNRESET ? absent : error;
}

}  // namespace

void ConnectedPeer::request(const os::SocketAddress& listener, std::span<const std::byte> data) {
  started(endpoint_.at().port->connections().request(listener, data, *this), ECONNREFUSED);
}

void ConnectedPeer::accept(const link::ConnectionRequest& request,
                           std::span<const std::byte> data) {
  started(endpoint_.at().port->connections().accept(request, data, *this), ECONNABORTED);
}

void ConnectedPeer::started(const Result<link::ConnectionNumber>& number, int absent) {
  if (!number) return failed(attempt_error(number.error().code, absent), {});
  number_ = number.value();
  shared_.watch_connections();
}

void ConnectedPeer::connected(std::uint32_t source, std::shared_ptr<link::Flow> flow,
                              std::span<const std::byte> data) {
  source_ = endpoint_.at().senders[source];
  bound_ = source;
  receiver_.bind(*source_);
  flows_.set_only(std::move(flow));
  sink_->connected(data);
}

void ConnectedPeer::failed(int error, std::span<const std::byte> data) {
  number_ = 0;
  sink_->failed(error, data);
}

void ConnectedPeer::ended() {
  number_ = 0;
  parting_is_due_ = true;
  shared_.visit(endpoint_);
}

void ConnectedPeer::part() {
  parting_is_due_ = false;
  sink_->parted();
}

// The end of the connection goes behind what has been sent.
void ConnectedPeer::leave() {
  if (number_ == 0) return;
  endpoint_.at().port->connections().disconnect(std::exchange(number_, 0));
}

void ConnectedPeer::disconnect(int error) {
  parting_is_due_ = false;
  leave();
  sender_.report_losses_as(error);
  flows_.end_only();
  if (source_ != nullptr) std::exchange(source_, nullptr)->accepted = false;
  receiver_.end(ESHUTDOWN, error);
}

// The source is refused whether or not it counts as the peer still: what it sends finds no receiver
// any more.
void ConnectedPeer::withdraw() {
  leave();
  sink_ = nullptr;
  parting_is_due_ = false;
  source_.reset();
  const auto& senders = endpoint_.at().senders;
  const bool open = bound_ < senders.size() && senders[bound_] != nullptr;
  if (open && senders[bound_]->receiver == &receiver_) endpoint_.at().refuse(bound_);
}

// A peer that takes no messages any more has gone, even if some of its own are still to come.
void ConnectedPeer::check() {
  if (number_ == 0 || source_ == nullptr || flows_.only() != nullptr) return;
  endpoint_.at().poll();
  if (number_ == 0) return;
  leave();
  ended();
}

}  // namespace weft::messaging
