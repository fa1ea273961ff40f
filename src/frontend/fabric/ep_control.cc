// SPDX-License-Identifier: BSD-2-Clause
// How does a program control an endpoint? fi_close, fi_ep_bind, fi_control, fi_cancel, fi_getopt
// and fi_setopt of fi_endpoint(3)
#include <cstring>

#include "alias.h"
#include "boundary.h"
#include "ep.h"
#include "fid_object.h"
#include "name.h"
#include "offer.h"
#include "operations.h"

namespace weft::fabric {
namespace {

int close_endpoint(fid* fid) {
  return at_c_border([&] {
    Ep& ep = Ep::from(fid);
    if (ep.in_use()) return -FI_EBUSY;
    if (const int busy = ep.quiesce()) return busy;
    delete &ep;
    return 0;
  });
}

int alias(Handle& handle, const struct fi_alias* wish) {
  if (wish == nullptr || wish->fid == nullptr) return -FI_EINVAL;
  return at_c_border([&] { return Alias::open(handle, wish->flags, wish->fid); });
}

int control_ep(fid* fid, int command, void* argument) {
  switch (command) {
    case FI_ENABLE:
      return at_c_border([&] { return Ep::from(fid).enable(); });
    case FI_ALIAS:
      return alias(Handle::from(fid), static_cast<const struct fi_alias*>(argument));
    default:
      return control_flags(Handle::from(fid), command, argument);
  }
}

ssize_t cancel(fid* fid, void* context) {
  const Handle& handle = Handle::from(fid);
  // On an endpoint, receives of its shared context may be cancelled, too.
  messaging::Endpoint* const endpoint = handle.core();
  messaging::ReceiveQueue* const queue =
      endpoint != nullptr ? &endpoint->receives() : handle.receives();
  if (queue == nullptr) return -FI_EOPBADSTATE;
  return at_c_border([&]() -> ssize_t {
    const auto deferred = handle.domain().triggers().withdraw([&](const device::Waiting& waiting) {
      const bool mine = waiting.owner == queue || waiting.owner == endpoint;
      return mine && !waiting.work && waiting.name == context;
    });
    for (const auto& entry : deferred) entry.operation->fail(ECANCELED);
    if (!deferred.empty()) return 0;
    return endpoint != nullptr ? -endpoint->cancel(context) : -queue->cancel(context);
  });
}

// fi_endpoint(3): the options of FI_OPT_ENDPOINT that concern weft.
int getopt_ep(fid* fid, int level, int name, void* value, std::size_t* length) {
  const Handle& handle = Handle::from(fid);
  if (level != FI_OPT_ENDPOINT) return -FI_ENOPROTOOPT;
  if (name == FI_OPT_MIN_MULTI_RECV) return give_option(handle.min_multi_receive(), value, length);
  // Weft copies by drivers, never from device to device.
  Ep* const ep = handle.endpoint();
  if (name == FI_OPT_FI_HMEM_P2P && ep != nullptr && (handle.caps() & FI_HMEM) != 0) {
    return give_option(ep->peer_to_peer().load(), value, length);
  }
  if (name == FI_OPT_CM_DATA_SIZE && ep != nullptr && ep->is_connected()) {
    return give_option(kConnectionData, value, length);
  }
  return -FI_ENOPROTOOPT;
}

int set_peer_to_peer(const Handle& handle, const void* value, std::size_t length) {
  int wanted = 0;
  if (handle.endpoint() == nullptr || (handle.caps() & FI_HMEM) == 0) return -FI_ENOPROTOOPT;
  if (value == nullptr || length != sizeof wanted) return -FI_EINVAL;
  std::memcpy(&wanted, value, sizeof wanted);
  if (wanted == FI_HMEM_P2P_REQUIRED) return -FI_EOPNOTSUPP;
  if (wanted < FI_HMEM_P2P_ENABLED || wanted > FI_HMEM_P2P_DISABLED) return -FI_EINVAL;
  handle.endpoint()->peer_to_peer() = wanted;
  return 0;
}

int setopt_ep(fid* fid, int level, int name, const void* value, std::size_t length) {
  if (level != FI_OPT_ENDPOINT) return -FI_ENOPROTOOPT;
  if (name == FI_OPT_FI_HMEM_P2P) return set_peer_to_peer(Handle::from(fid), value, length);
  if (name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  std::size_t least = 0;
  if (value == nullptr || length != sizeof least) return -FI_EINVAL;
  std::memcpy(&least, value, sizeof least);
  Handle::from(fid).min_multi_receive() = least;
  return 0;
}

ssize_t rx_size_left(fid_ep* ep) {
  const Handle& handle = Handle::from(ep);
  if (handle.receives() == nullptr) return -FI_EOPBADSTATE;
  return static_cast<ssize_t>(handle.receives()->room());
}

// A peer whose queue is full may take less.
ssize_t tx_size_left(fid_ep* ep) {
  const Handle& handle = Handle::from(ep);
  if (handle.core() == nullptr) return -FI_EOPBADSTATE;
  return static_cast<ssize_t>(handle.endpoint()->tx_size_left());
}

constexpr FidCalls kEpCalls{
    .close = close_endpoint, .bind = bind_object<Ep>, .control = control_ep};
constexpr FidCalls kAliasCalls{
    .close = close_object<Alias>, .bind = bind_object<Ep>, .control = control_ep};

}  // namespace

fi_ops* ep_fid_operations() { return fid_operations<kEpCalls>(); }
fi_ops* alias_fid_operations() { return fid_operations<kAliasCalls>(); }

// The flags of one direction that calls without flags use, fi_control(3).
int control_flags(Handle& handle, int command, void* argument) {
  if (command != FI_GETOPSFLAG && command != FI_SETOPSFLAG) return -FI_ENOSYS;
  if (argument == nullptr) return -FI_EINVAL;
  auto& value = *static_cast<std::uint64_t*>(argument);
  const bool tx = (value & FI_TRANSMIT) != 0;
  const bool rx = (value & FI_RECV) != 0;
  if (tx == rx || (tx && handle.offer() == nullptr)) return -FI_EINVAL;
  Flags& flags = tx ? handle.tx_flags : handle.rx_flags;
  if (command == FI_GETOPSFLAG) {
    value = flags;
    return 0;
  }
  const std::uint64_t wanted = value & ~std::uint64_t{FI_TRANSMIT | FI_RECV};
  const std::uint64_t allowed = tx ? handle.offer()->tx_flags : kRxFlags;
  if ((wanted & ~(allowed | (handle.caps() & FI_TRIGGER))) != 0) return -FI_EBADFLAGS;
  flags = wanted;
  return 0;
}

fi_ops_ep* handle_operations() {
  return operations_with<fi_ops_ep>([](fi_ops_ep& table) {
    table.cancel = cancel;
    table.getopt = getopt_ep;
    table.setopt = setopt_ep;
    table.rx_size_left = rx_size_left;
    table.tx_size_left = tx_size_left;
  });
}

}  // namespace weft::fabric
