// SPDX-License-Identifier: BSD-2-Clause
// How does a program control an endpoint? fi_close, fi_ep_bind, fi_control, fi_cancel, fi_getopt
// and fi_setopt of fi_endpoint(3)
#include <cstring>

#include "boundary.h"
#include "ep.h"
#include "name.h"
#include "offer.h"
#include "unsupported.h"

namespace weft::fabric {
namespace {

int close_endpoint(fid* fid) {
  return at_c_border([&] {
    Endpoint& ep = Endpoint::from(fid);
    if (ep.in_use()) return -FI_EBUSY;
    delete &ep;
    return 0;
  });
}

int bind(fid* fid, struct fid* object, std::uint64_t flags) {
  if (object == nullptr) return -FI_EINVAL;
  return at_c_border([&] { return Endpoint::from(fid).bind(object, flags); });
}

// The flags of one direction that calls without flags use, fi_control(3).
int operation_flags(Endpoint& ep, std::uint64_t& value, bool set) {
  const bool tx = (value & FI_TRANSMIT) != 0;
  const bool rx = (value & FI_RECV) != 0;
  if (tx == rx) return -FI_EINVAL;
  std::uint64_t& flags = tx ? ep.tx_flags : ep.rx_flags;
  if (!set) {
    value = flags;
    return 0;
  }
  const std::uint64_t wanted = value & ~std::uint64_t{FI_TRANSMIT | FI_RECV};
  if ((wanted & ~(tx ? ep.offer().tx_flags : kRxFlags)) != 0) return -FI_EBADFLAGS;
  flags = wanted;
  return 0;
}

int control(fid* fid, int command, void* argument) {
  Endpoint& ep = Endpoint::from(fid);
  switch (command) {
    case FI_ENABLE:
      return at_c_border([&] { return ep.enable(); });
    case FI_GETOPSFLAG:
    case FI_SETOPSFLAG:
      if (argument == nullptr) return -FI_EINVAL;
      return operation_flags(ep, *static_cast<std::uint64_t*>(argument), command == FI_SETOPSFLAG);
    default:
      return -FI_ENOSYS;
  }
}

ssize_t cancel(fid* fid, void* context) {
  Endpoint& ep = Endpoint::from(fid);
  if (ep.core() == nullptr) return -FI_EOPBADSTATE;
  return at_c_border([&]() -> ssize_t { return -ep.core()->cancel(context); });
}

// fi_endpoint(3): the options of FI_OPT_ENDPOINT that concern weft.
int getopt(fid* fid, int level, int name, void* value, std::size_t* length) {
  Endpoint& ep = Endpoint::from(fid);
  if (level != FI_OPT_ENDPOINT) return -FI_ENOPROTOOPT;
  if (name == FI_OPT_MIN_MULTI_RECV) return give_option(ep.min_multi_receive, value, length);
  if (name == FI_OPT_CM_DATA_SIZE && ep.connector() != nullptr) {
    return give_option(kConnectionData, value, length);
  }
  return -FI_ENOPROTOOPT;
}

int setopt(fid* fid, int level, int name, const void* value, std::size_t length) {
  if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  std::size_t least = 0;
  if (value == nullptr || length != sizeof least) return -FI_EINVAL;
  std::memcpy(&least, value, sizeof least);
  Endpoint::from(fid).min_multi_receive = least;
  return 0;
}

ssize_t rx_size_left(fid_ep* ep) {
  Endpoint& object = Endpoint::from(ep);
  return object.core() == nullptr ? -FI_EOPBADSTATE : static_cast<ssize_t>(object.rx_size());
}

ssize_t tx_size_left(fid_ep* ep) {
  Endpoint& object = Endpoint::from(ep);
  return object.core() == nullptr ? -FI_EOPBADSTATE : static_cast<ssize_t>(object.tx_size());
}

}  // namespace

fi_ops* ep_fid_operations() {
  static fi_ops table = [] {
    fi_ops operations = unsupported_operations<fi_ops>();
    operations.close = close_endpoint;
    operations.bind = bind;
    operations.control = control;
    return operations;
  }();
  return &table;
}

fi_ops_ep* ep_operations() {
  static fi_ops_ep table = [] {
    fi_ops_ep operations = unsupported_operations<fi_ops_ep>();
    operations.cancel = cancel;
    operations.getopt = getopt;
    operations.setopt = setopt;
    operations.rx_size_left = rx_size_left;
    operations.tx_size_left = tx_size_left;
    return operations;
  }();
  return &table;
}

}  // namespace weft::fabric
