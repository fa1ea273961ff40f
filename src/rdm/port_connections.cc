// SPDX-License-Identifier: BSD-2-Clause
// How does a port make the connections of programs, by whichever link leads to the peer?
#include "rdm/port_connections.h"

#include <cerrno>
#include <utility>

#include "rdm/connection_message.h"
#include "rdm/flow_message.h"

namespace weft::rdm {
namespace {

// In an MRA: 34 s.
constexpr std::uint8_t kServiceTimeout = 23;

cm::Carrier carrier_of(const link::ConnectionRequest& request) {
  return request.within_host ? cm::Carrier::kMailbox : cm::Carrier::kPackets;
}

}  // namespace

PortConnections::PortConnections(std::uint16_t port, std::chrono::nanoseconds peer_timeout,
                                 RandomSource random, Stats& stats, AuthorizationPtr key)
    : port_(port),
      random_(std::move(random)),
      authorization_(std::move(key)),
      agent_(*this,
             {.port = port,
              .guid = random_() | 1,  // 0 names no endpoint
              .peer_timeout = peer_timeout},
             stats) {}

// The link within the host goes on to the other one itself.
Result<link::ConnectionNumber> PortConnections::request(const os::SocketAddress& listener,
                                                        std::span<const std::byte> data,
                                                        link::ConnectionUser& user) {
  if (const Status fits = check_connection_data(data); !fits) return fits.error();
  return any_of(cm::Carrier::kMailbox, cm::Carrier::kPackets).request(listener, data, user);
}

Result<link::ConnectionNumber> PortConnections::accept(const link::ConnectionRequest& request,
                                                       std::span<const std::byte> data,
                                                       link::ConnectionUser& user) {
  if (const Status fits = check_connection_data(data); !fits) return fits.error();
  LinkConnections* const link = link_by(carrier_of(request));
  if (link == nullptr) return Error{ENOSPC, "this port has no mailbox, by which the request came"};
  const auto& req = std::get<wire::CmReq>(request.req.message);
  const auto asked = read_request(req);
  if (asked && !is_proven(authorization_, *asked, static_cast<std::uint16_t>(req.service))) {
    refuse(request, write_other_authorization());
    return Error{link::kOtherAuthorization, "the requester has another authorization key"};
  }
  return link->accept(request, data, user);
}

void PortConnections::reject(const link::ConnectionRequest& request) {
  refuse(request, write_rejection({}));
}

void PortConnections::refuse(const link::ConnectionRequest& request,
                             std::span<const std::byte> data) {
  const cm::Carrier carrier = carrier_of(request);
  if (link_by(carrier) == nullptr) return;
  const auto id = agent_.adopt({request.peer, carrier}, request.req, *this, nullptr, now());
  if (id) static_cast<void>(agent_.reject(id.value(), wire::CmReason::kConsumer, data, now()));
}

void PortConnections::disconnect(link::ConnectionNumber number) {
  for (LinkConnections* const link : links_) {
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

void PortConnections::send(const cm::Remote& to, cm::ConnectionId id,
                           std::span<const std::byte> message) {
  link_by(to.carrier)->send(to.address, id, message);
}

void PortConnections::handle(const cm::CmEvent& event) {
  using enum cm::EventKind;
  if (event.kind == kRequest || event.kind == kResolve)
    return link_by(event.remote.carrier)->on_request(event, *user_);
  user_->withdrawn(event.id);
}

}  // namespace weft::rdm
