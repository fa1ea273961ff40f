// SPDX-License-Identifier: BSD-2-Clause
// What makes an endpoint a connected one? fi_cm(3)
#include "connector.h"

#include <utility>

#include "boundary.h"
#include "log.h"

namespace weft::fabric {

Connector::Connector(struct fid& ep, Domain& domain, std::optional<connect::Request> request)
    : ep_(ep), domain_(domain) {
  if (request) request_ = std::make_unique<connect::Request>(std::move(*request));
}

Connector::~Connector() {
  if (eq() != nullptr) eq()->forget(ep_);
}

// The listener goes on trying where this end cannot send anything, for want of memory.
void Connector::decline(const os::SocketAddress& host) {
  if (!request_) return;
  if (const auto listener = request_->listener.lock()) {
    if (state_ == ConnectorState::kIdle) return listener->take_back(request_->number);
    return listener->reject(request_->number, {});
  }
  const auto port = os::UdpPort::bind(host);
  if (!port) return;
  const Options& options = domain_.options();
  connect::reject(domain_.device(), {port.value(), options.links}, options, request_->request);
}

void Connector::set_up(messaging::EndpointSetup& setup) {
  setup.addresses = &no_addresses_;
  setup.connection = this;
}

int Connector::connect(const os::SocketAddress& listener, std::span<const std::byte> data) {
  if (Status ok = domain_.begin_control(); !ok) return fabric_status(ok.error());
  return core_->exclusively([&] {
    if (request_ || state_ != ConnectorState::kIdle) return -FI_EOPBADSTATE;
    peer_ = listener;
    state_ = ConnectorState::kAttempted;
    core_->peer().request(listener, data);
    return 0;
  });
}

// The requester has not heard of an acceptance that failed at once: decline() rejects it.
int Connector::accept(std::span<const std::byte> data) {
  if (Status ok = domain_.begin_control(); !ok) return fabric_status(ok.error());
  std::unique_ptr<connect::Request> decided;
  std::shared_ptr<connect::Listener> listener;
  const int status = core_->exclusively([&] {
    if (!request_ || state_ != ConnectorState::kIdle) return -FI_EOPBADSTATE;
    peer_ = request_->request.peer;
    listener = request_->listener.lock();
    state_ = ConnectorState::kAttempted;
    if (listener != nullptr && !listener->holds(request_->number)) {
      decided = std::move(request_);
      failed(ECONNABORTED, {});
      return 0;
    }
    request_->request.delayed = listener == nullptr;
    core_->peer().accept(request_->request, data);
    if (state_ != ConnectorState::kEnded || rejected_) decided = std::move(request_);
    return 0;
  });
  if (decided && listener != nullptr) listener->forward(decided->number);
  return status;
}

int Connector::shut_down() {
  return core_->exclusively([&] {
    if (state_ == ConnectorState::kIdle) return -FI_ENOTCONN;
    if (state_ == ConnectorState::kEnded) return 0;
    // As with other providers each end gets one FI_SHUTDOWN, whichever end caused it. An end
    // without FI_CONNECTED has given up instead.
    const ConnectorState before = std::exchange(state_, ConnectorState::kEnded);
    if (before == ConnectorState::kConnected) eq()->push_connection(FI_SHUTDOWN, ep_, nullptr, {});
    core_->peer().disconnect(ECANCELED);
    return 0;
  });
}

std::optional<os::SocketAddress> Connector::peer() {
  return core_->exclusively([&] { return peer_; });
}

void Connector::connected(std::span<const std::byte> data) {
  state_ = ConnectorState::kConnected;
  eq()->push_connection(FI_CONNECTED, ep_, nullptr, data);
}

// No peer will come any more: receives end.
void Connector::failed(int error, std::span<const std::byte> data) {
  state_ = ConnectorState::kEnded;
  rejected_ = error == EACCES;
  core_->peer().disconnect(error);
  fi_eq_err_entry entry{};
  entry.fid = &ep_;
  entry.context = ep_.context;
  entry.err = error;
  eq()->push_error(entry, data);
}

void Connector::parted() {
  state_ = ConnectorState::kEnded;
  core_->peer().disconnect(ECONNRESET);
  eq()->push_connection(FI_SHUTDOWN, ep_, nullptr, {});
}

}  // namespace weft::fabric
