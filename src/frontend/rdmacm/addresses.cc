// SPDX-License-Identifier: BSD-2-Clause
// How does an id get its addresses and its device? (rdma_bind_addr(3), rdma_resolve_addr(3),
// rdma_resolve_route(3), rdma_listen(3))
#include "addresses.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "boundary.h"
#include "cm_space.h"
#include "events.h"
#include "os/interfaces.h"

namespace weft::rdmacm {
namespace {

constexpr std::size_t kMostBacklog = 1024;

Result<os::SocketAddress> parse(const sockaddr* address) {
  if (address == nullptr) return Error{EINVAL, "no address"};
  switch (address->sa_family) {
    case AF_INET:
      return os::SocketAddress::parse(address, sizeof(sockaddr_in));
    case AF_INET6:
      return os::SocketAddress::parse(address, sizeof(sockaddr_in6));
    default:  // AF_IB, too, as with Linux on Ethernet
      return Error{EINVAL, "neither IPv4 nor IPv6"};
  }
}

Status check_port_space(const CmId& id) {
  if (id.ps == RDMA_PS_IPOIB) return Error{EINVAL, "IPoIB needs InfiniBand"};
  return {};
}

void report(CmId& id, rdma_cm_event_type type, int status) {
  id.own_channel().add(id.event_of(type, status));
}

IdState state_of(CmId& id) {
  const MutexLock guard(id.space().lock());
  return id.state;
}

// Whether a bound id has a socket of that family.
bool reaches(CmId& id, int family) {
  const MutexLock guard(id.space().lock());
  return id.manager->has_both_families() || id.manager->address().family() == family;
}

// With a UDP port of its own.
Status bind(CmId& id, const os::SocketAddress& address) {
  if (Status fits = check_port_space(id); !fits) return fits;
  std::optional<LocalGid> local;
  if (!address.is_any()) {
    auto found = DeviceTable::instance().find(address);
    if (!found) return found.error();
    local = found.value();
  } else if (auto devices = DeviceTable::instance().list(); !devices) {
    return devices.error();
  }
  const MutexLock guard(id.space().lock());
  auto manager = id.space().bind(id, address);
  if (!manager) return manager.error();
  id.manager = std::move(manager).value();
  id.state = IdState::kBound;
  if (local) id.bind_to(*local);
  os::SocketAddress chosen = address;
  chosen.set_port(id.manager->address().port());
  id.set_source(chosen);
  return {};
}

// The source of packets to that address, and the device that has it.
Status choose_source(CmId& id, const os::SocketAddress& destination) {
  os::SocketAddress source = id.source();
  if (source.family() == AF_UNSPEC || source.is_any()) {
    const std::uint16_t port = source.port();
    auto chosen = os::source_towards(destination);
    if (!chosen) return chosen.error();
    source = chosen.value();
    source.set_port(port);
  } else if (source.family() != destination.family()) {
    return Error{EINVAL, "addresses of two families"};
  }
  auto local = DeviceTable::instance().find(source);
  if (!local) return Error{ENODEV, local.error().message};
  const MutexLock guard(id.space().lock());
  if (id.manager == nullptr) {
    auto manager = id.space().for_requests();
    if (!manager) return manager.error();
    id.manager = std::move(manager).value();
  }
  id.bind_to(local.value());
  source.set_port(id.manager->address().port());
  id.set_source(source);
  return {};
}

Status resolve(CmId& id, const sockaddr* from, const sockaddr* to) {
  auto destination = parse(to);
  if (!destination) return destination.error();
  if (Status fits = check_port_space(id); !fits) return fits;
  const IdState state = state_of(id);
  if (state != IdState::kIdle && state != IdState::kBound) {
    return Error{EINVAL, "the id has an address"};
  }
  if (state == IdState::kBound && !reaches(id, destination.value().family())) {
    return Error{EINVAL, "the id is bound to an address of the other family"};
  }
  // Cleared memory is no source, as with rdma-core.
  const bool has_source = from != nullptr && from->sa_family != AF_UNSPEC;
  if (has_source && state == IdState::kIdle) {
    auto source = parse(from);
    if (!source) return source.error();
    if (source.value().family() != destination.value().family()) {
      return Error{EINVAL, "addresses of two families"};
    }
    if (source.value().port() != 0) {
      if (Status bound = bind(id, source.value()); !bound) return bound;
    } else if (!source.value().is_any()) {
      auto local = DeviceTable::instance().find(source.value());
      if (!local) return local.error();
      id.set_source(source.value());
    }
  }
  os::SocketAddress peer = destination.value();
  if (peer.is_any()) peer = loopback_address(peer.family(), peer.port());
  id.set_destination(peer);
  const Status found = choose_source(id, peer);
  const ibv_gid gid = found ? gid_of_peer(id.local.gid, peer) : ibv_gid{};
  const MutexLock guard(id.space().lock());
  if (found) {
    id.state = IdState::kAddressResolved;
    id.route.addr.addr.ibaddr.dgid = gid;
    report(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
  } else {
    report(id, RDMA_CM_EVENT_ADDR_ERROR, -found.error().code);
  }
  return {};
}

Status resolve_route(CmId& id) {
  const MutexLock guard(id.space().lock());
  if (id.state != IdState::kAddressResolved) return Error{EINVAL, "the address is not resolved"};
  id.state = IdState::kRouteResolved;
  id.set_route(ibv_gid(id.route.addr.addr.ibaddr.dgid));
  report(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
  return {};
}

Status listen(CmId& id, int backlog) {
  if (state_of(id) == IdState::kIdle) {
    const auto any = os::SocketAddress::of_host(AF_INET, "\0\0\0\0", 0);
    if (Status bound = bind(id, any); !bound) return bound;
  }
  const std::size_t requests =
      backlog <= 0 ? kMostBacklog : std::min<std::size_t>(backlog, kMostBacklog);
  const MutexLock guard(id.space().lock());
  if (id.state != IdState::kBound) return Error{EINVAL, "the id is not bound"};
  if (Status done = id.manager->listen(id, requests); !done) return done;
  id.state = IdState::kListening;
  return {};
}

}  // namespace

Status bind_address(CmId& id, const sockaddr* address) {
  auto wanted = parse(address);
  if (!wanted) return wanted.error();
  if (state_of(id) != IdState::kIdle) return Error{EINVAL, "the id is bound"};
  return bind(id, wanted.value());
}

Status resolve_addresses(CmId& id, const sockaddr* from, const sockaddr* to) {
  if (Status begun = resolve(id, from, to); !begun) return begun;
  return await(id);
}

Status resolve_path(CmId& id) {
  if (Status begun = resolve_route(id); !begun) return begun;
  return await(id);
}

}  // namespace weft::rdmacm

using namespace weft::rdmacm;

extern "C" {

int rdma_bind_addr(rdma_cm_id* id, sockaddr* address) {
  if (id == nullptr) return minus_one_with(EINVAL);
  return at_c_border([&] { return bind_address(CmId::of(id), address); });
}

int rdma_resolve_addr(rdma_cm_id* id, sockaddr* from, sockaddr* to, int /*timeout_ms*/) {
  if (id == nullptr) return minus_one_with(EINVAL);
  return at_c_border([&] { return resolve_addresses(CmId::of(id), from, to); });
}

int rdma_resolve_route(rdma_cm_id* id, int /*timeout_ms*/) {
  if (id == nullptr) return minus_one_with(EINVAL);
  return at_c_border([&] { return resolve_path(CmId::of(id)); });
}

int rdma_listen(rdma_cm_id* id, int backlog) {
  if (id == nullptr) return minus_one_with(EINVAL);
  return at_c_border([&] { return listen(CmId::of(id), backlog); });
}

}  // extern "C"
