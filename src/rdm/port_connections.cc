// SPDX-License-Identifier: BSD-2-Clause
// How does a port make the connections of programs, by whichever link leads to the peer?
#include "rdm/port_connections.h"

#include <cerrno>

#include "rdm/connection_message.h"

namespace weft::rdm {
namespace {

// In an MRA: 34 s.
constexpr std::uint8_t kServiceTimeout = 23;

}  // namespace

// The link within the host goes on to the other one itself.
Result<link::ConnectionNumber> PortConnections::request(const os::SocketAddress& listener,
                                                        std::span<const std::byte> data,
                                                        link::ConnectionUser& user) {
  if (const Status fits = check_connection_data(data); !fits) return fits.error();
  return (same_host_ != nullptr ? same_host_ : remote_)->request(listener, data, user);
}

Result<link::ConnectionNumber> PortConnections::accept(const link::ConnectionRequest& request,
                                                       std::span<const std::byte> data,
                                                       link::ConnectionUser& user) {
  if (const Status fits = check_connection_data(data); !fits) return fits.error();
  LinkConnections* const link = link_of(request);
  if (link == nullptr) return Error{EINVAL, "this port lacks the link of the request"};
  return link->accept(request, data, user);
}

void PortConnections::reject(const link::ConnectionRequest& request) {
  if (link_of(request) == nullptr) return;
  const auto carrier = request.within_host ? cm::Carrier::kMailbox : cm::Carrier::kPackets;
  const auto id = agent_.adopt({request.peer, carrier}, request.req, *this, nullptr, now());
  if (id) reject(id.value(), {});
}

void PortConnections::disconnect(link::ConnectionNumber number) {
  for (LinkConnections* const link : {same_host_, remote_}) {
    if (link != nullptr && link->disconnect(number)) return;
  }
}

Status PortConnections::listen(std::size_t backlog, link::ListenerUser& user) {
  const auto listener = agent_.listen(connection_service(port_), backlog, *this, nullptr);
  if (!listener) return listener.error();
  listener_ = listener.value();
  user_ = &user;
  return {};
}

// Events of the network wait for the next poll.
void PortConnections::set_backlog(std::size_t backlog) {
  agent_.set_backlog(listener_, backlog);
  agent_.deliver(cm::Carrier::kMailbox);
}

void PortConnections::reject(link::ConnectionNumber request, std::span<const std::byte> data) {
  static_cast<void>(
      agent_.reject(request, wire::CmReason::kConsumer, write_rejection(data), now()));
}

void PortConnections::delay(link::ConnectionNumber request) {
  static_cast<void>(agent_.delay(request, kServiceTimeout, now()));
}

void PortConnections::forward(link::ConnectionNumber request) {
  static_cast<void>(agent_.forward(request, now()));
}

void PortConnections::handle(const cm::CmEvent& event) {
  using enum cm::EventKind;
  const bool within_host = event.remote.carrier == cm::Carrier::kMailbox;
  if (event.kind == kRequest || event.kind == kResolve)
    return (within_host ? same_host_ : remote_)->on_request(event, *user_);
  user_->withdrawn(event.id);
}

}  // namespace weft::rdm
