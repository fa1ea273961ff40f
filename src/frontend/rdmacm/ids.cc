// SPDX-License-Identifier: BSD-2-Clause
// How do ids begin and end? (rdma_create_id(3), rdma_destroy_id(3), rdma_migrate_id(3))
#include <cerrno>
#include <cstring>
#include <utility>

#include "addresses.h"
#include "boundary.h"
#include "channels.h"
#include "cm_id.h"
#include "cm_space.h"
#include "shared_queues.h"

namespace weft::rdmacm {
namespace {

Status create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context, unsigned ps) {
  switch (ps) {
    case RDMA_PS_TCP:
    case RDMA_PS_IB:
    case RDMA_PS_UDP:
    case RDMA_PS_IPOIB:
      break;
    default:
      return Error{EINVAL, "no port space"};
  }
  const bool has_datagrams = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB;
  auto space = CmSpace::instance();
  if (!space) return space.error();
  std::shared_ptr<CmChannel> events;
  if (channel != nullptr) events = CmChannel::of(channel).shared_from_this();
  if (events != nullptr && events->is_inherited()) return Error{EINVAL, "a parent's channel"};
  auto made =
      CmId::create(std::move(space).value(), std::move(events), context,
                   static_cast<rdma_port_space>(ps), has_datagrams ? IBV_QPT_UD : IBV_QPT_RC);
  if (!made) return made.error();
  *id = made.value().release();
  return {};
}

// On return no event of it is with the program, nor in its channel.
void drain(CmId& id) {
  CmSpace& space = id.space();
  const MutexLock guard(space.lock());
  const auto is_of_id = [&](const CmEventRecord& each) { return each.target == &id; };
  id.own_channel().drop(is_of_id);
  while (id.delivered != id.acknowledged) space.acknowledgements().wait(space.lock());
}

void destroy_id(CmId& id) {
  if (id.event != nullptr) rdma_ack_cm_event(std::exchange(id.event, nullptr));
  if (id.postponed != nullptr) {
    rdma_cm_id* const requested = id.postponed->id;
    rdma_ack_cm_event(std::exchange(id.postponed, nullptr));
    rdma_destroy_id(requested);
  }
  retry_destroyed_queues(id);
  {
    const MutexLock guard(id.space().lock());
    if (id.manager != nullptr) id.manager->forget(id);
    id.space().let_go(id);
  }
  drain(id);
  if (id.is_sync) retire(id.shared_channel());
  delete &id;
}

// To a channel of its own where `handle` is null.
Status migrate(CmId& id, rdma_event_channel* handle) {
  if (handle == nullptr && id.is_sync) return Error{EINVAL, "the id is synchronous already"};
  std::shared_ptr<CmChannel> to;
  if (handle != nullptr) {
    to = CmChannel::of(handle).shared_from_this();
    if (to->is_inherited()) return Error{EINVAL, "a parent's channel"};
  } else {
    auto made = CmChannel::create(id.shared_space());
    if (!made) return made.error();
    to = std::move(made).value();
  }
  if (id.event != nullptr) rdma_ack_cm_event(std::exchange(id.event, nullptr));
  const std::shared_ptr<CmChannel> former = id.shared_channel();
  CmSpace& space = id.space();
  const bool leaves_own = id.is_sync && former != to;
  {
    const MutexLock guard(space.lock());
    if (former != to) {
      former->move(id, *to);
      id.set_channel(to);
      id.is_sync = handle == nullptr;
    }
    while (id.delivered != id.acknowledged) space.acknowledgements().wait(space.lock());
  }
  if (leaves_own) retire(former);
  return {};
}

template <class Number>
Status read_option(const void* value, std::size_t length, Number& number) {
  if (length != sizeof number || value == nullptr) return Error{EINVAL, "another size"};
  std::memcpy(&number, value, sizeof number);
  return {};
}

Status set_option(CmId& id, int level, int name, const void* value, std::size_t length) {
  constexpr std::uint8_t kMostTimeout = 31;
  int number = 0;
  std::uint8_t octet = 0;
  if (level == RDMA_OPTION_IB && name == RDMA_OPTION_IB_PATH) {
    if (value == nullptr || length == 0 || length % sizeof(ibv_path_data) != 0) {
      return Error{EINVAL, "no path records"};
    }
    return resolve_path(id);
  }
  const MutexLock guard(id.space().lock());
  if (level != RDMA_OPTION_ID) return Error{ENOSYS, "unknown level"};
  switch (name) {
    case RDMA_OPTION_ID_TOS:
      if (Status read = read_option(value, length, octet); !read) return read;
      id.options.traffic_class = octet;
      return {};
    case RDMA_OPTION_ID_REUSEADDR:
    case RDMA_OPTION_ID_AFONLY:
      if (Status read = read_option(value, length, number); !read) return read;
      if (id.state != IdState::kIdle) return Error{EINVAL, "the id is bound"};
      (name == RDMA_OPTION_ID_AFONLY ? id.options.is_ipv6_only : id.options.reuses_address) =
          number != 0;
      return {};
    case RDMA_OPTION_ID_ACK_TIMEOUT:
      if (Status read = read_option(value, length, octet); !read) return read;
      if (octet > kMostTimeout) return Error{EINVAL, "a timeout has 5 bits"};
      if (id.has_datagrams()) return Error{EINVAL, "datagrams are not acknowledged"};
      id.options.ack_timeout = octet;
      return {};
    default:
      return Error{ENOSYS, "unknown option"};
  }
}

__be16 port_in(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in&>(address).sin_port;
  }
  return address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                       : 0;
}

}  // namespace
}  // namespace weft::rdmacm

using namespace weft::rdmacm;

extern "C" {

int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context,
                   rdma_port_space ps) {
  if (id == nullptr) return minus_one_with(EINVAL);
  unsigned number = 0;
  static_assert(sizeof number == sizeof ps);
  std::memcpy(&number, &ps, sizeof number);
  return at_c_border([&] { return create_id(channel, id, context, number); });
}

int rdma_destroy_id(rdma_cm_id* id) {
  if (id == nullptr) return minus_one_with(EINVAL);
  return at_c_border([&]() -> weft::Status {
    destroy_id(CmId::of(id));
    return {};
  });
}

int rdma_migrate_id(rdma_cm_id* id, rdma_event_channel* channel) {
  if (id == nullptr) return minus_one_with(EINVAL);
  return at_c_border([&] { return migrate(CmId::of(id), channel); });
}

int rdma_set_option(rdma_cm_id* id, int level, int name, void* value, std::size_t length) {
  if (id == nullptr) return minus_one_with(EINVAL);
  return at_c_border([&] { return set_option(CmId::of(id), level, name, value, length); });
}

__be16 rdma_get_src_port(rdma_cm_id* id) { return port_in(id->route.addr.src_storage); }
__be16 rdma_get_dst_port(rdma_cm_id* id) { return port_in(id->route.addr.dst_storage); }

}  // extern "C"
