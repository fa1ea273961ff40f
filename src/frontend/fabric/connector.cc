// SPDX-License-Identifier: BSD-2-Clause
// What makes an endpoint a connected one? fi_cm(3)
#include "connector.h"

#include <utility>

#include "connect/listener.h"
#include "log.h"

namespace weft::fabric {

using connect::ConnectionState;

Connector::Connector(struct fid& ep, Domain& domain, std::optional<connect::Request> request)
    : ep_(ep),
      domain_(domain),
      request_(std::move(request)),
      connection_(*this, domain.options().request_timeout) {}

Connector::~Connector() {
  if (eq_ != nullptr) eq_->forget(ep_);
}

// The listener goes on trying where this end cannot say anything, for want of memory.
void Connector::decline(const os::SocketAddress& host) {
  if (!request_ || domain_.fabric().passive_endpoints().turn_down(*request_)) return;
  const auto port = os::UdpPort::bind(host);
  if (port)
    connect::turn_down(domain_.device(), {port.value(), domain_.options().links}, *request_);
}

int Connector::bind(EventQueue& eq) {
  if (eq_ != nullptr) return -FI_EINVAL;
  eq_ = &eq;
  eq_use_ = Use(eq);
  return 0;
}

void Connector::set_up(messaging::EndpointSetup& setup) {
  setup.addresses = &no_addresses_;
  setup.connection = this;
  setup.number_in = connect::addressee_of;
}

int Connector::connect(const os::SocketAddress& listener, connect::ConnectData data) {
  return core_->exclusively([&] {
    if (request_ || connection_.state() != ConnectionState::kIdle) return -FI_EOPBADSTATE;
    peer_ = listener;
    connection_.connect(listener, std::move(data), os::coarse_now());
    return 0;
  });
}

int Connector::accept(connect::ConnectData data) {
  return core_->exclusively([&] {
    if (!request_ || connection_.state() != ConnectionState::kIdle) return -FI_EOPBADSTATE;
    peer_ = request_->name;
    connection_.accept(*request_, std::move(data));
    // The requester has not heard of an acceptance that failed at once: decline() rejects it.
    if (connection_.state() != ConnectionState::kEnded) request_.reset();
    return 0;
  });
}

int Connector::shut_down() {
  return core_->exclusively([&] {
    switch (connection_.state()) {
      case ConnectionState::kIdle:
        return -FI_ENOTCONN;
      case ConnectionState::kRequesting:
      case ConnectionState::kPending:
      case ConnectionState::kAccepting:
      case ConnectionState::kConnected:
        // As with other providers each end gets one FI_SHUTDOWN, whichever end caused it.
        // An end without FI_CONNECTED has given up instead.
        if (connection_.shut_down() && !early_) {
          eq_->push_connection(FI_SHUTDOWN, ep_, nullptr, {});
        }
        core_->peer().disconnect(ECANCELED);
        return 0;
      case ConnectionState::kEnded:
        return 0;
    }
    return -FI_EOTHER;
  });
}

std::optional<os::SocketAddress> Connector::peer() {
  return core_->exclusively([&] { return peer_; });
}

void Connector::heard(std::uint32_t source, std::span<const std::byte> message) {
  connection_.hear(source, message);
}

void Connector::lost(bool died) { connection_.lose(died, os::coarse_now()); }

void Connector::reached() {
  if (connection_.state() == ConnectionState::kConnected) tell_what_was_early();
}

void Connector::tell_what_was_early() {
  if (!early_) return;
  eq_->push_connection(FI_CONNECTED, ep_, nullptr, *early_);
  early_.reset();
}

void Connector::tick(os::Time now) { connection_.tick(now); }

int Connector::reach(const os::SocketAddress& peer) { return core_->peer().open_path(peer); }

os::SocketAddress Connector::name() { return core_->at().name; }

void Connector::expect(connect::Token token) { core_->peer().expect(token); }

int Connector::send_control(const connect::ConnectMessage& message) {
  return core_->peer().send_control(connect::encode(message));
}

void Connector::accept_source(std::uint32_t source) { core_->peer().accept_source(source); }

void Connector::reject_source(std::uint32_t source) { core_->peer().reject_source(source); }

// The program may send as soon as it hears of the connection.
void Connector::connected(std::span<const std::byte> data) {
  if (!core_->peer().reached()) {
    early_.emplace(data.begin(), data.end());
    return;
  }
  eq_->push_connection(FI_CONNECTED, ep_, nullptr, data);
}

// No peer will come any more: receives end.
void Connector::failed(int error, std::span<const std::byte> data) {
  core_->peer().disconnect(error);
  fi_eq_err_entry entry{};
  entry.fid = &ep_;
  entry.context = ep_.context;
  entry.err = error;
  eq_->push_error(entry, data);
}

void Connector::parted() { core_->peer().part_later(); }

void Connector::parting_is_due() {
  tell_what_was_early();
  core_->peer().disconnect(ECONNRESET);
  eq_->push_connection(FI_SHUTDOWN, ep_, nullptr, {});
}

}  // namespace weft::fabric
