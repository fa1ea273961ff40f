// SPDX-License-Identifier: BSD-2-Clause
// How does a program connect an endpoint, and by which address is it known? fi_cm(3)
#include "boundary.h"
#include "ep.h"
#include "name.h"
#include "offer.h"
#include "operations.h"

namespace weft::fabric {
namespace {

int getpeer(fid_ep* ep, void* buffer, std::size_t* length) {
  return at_c_border([&] {
    Ep& object = Ep::from(ep);
    if (object.core() == nullptr) return -FI_ENOTCONN;
    const auto peer = object.connector()->peer();
    return peer ? give_address(*peer, buffer, length) : -FI_ENOTCONN;
  });
}

bool fits(const void* data, std::size_t length) {
  return length <= kConnectionData && (data != nullptr || length == 0);
}

int connect(fid_ep* ep, const void* bytes, const void* data, std::size_t length) {
  if (bytes == nullptr || !fits(data, length)) return -FI_EINVAL;
  return at_c_border([&] {
    const auto listener = address_at(bytes);
    if (!listener) return -FI_EINVAL;
    Ep& object = Ep::from(ep);
    if (object.core() == nullptr) {
      if (const int status = object.enable()) return status;
    }
    return object.connector()->connect(listener.value(), private_data(data, length));
  });
}

int accept(fid_ep* ep, const void* data, std::size_t length) {
  if (!fits(data, length)) return -FI_EINVAL;
  return at_c_border([&] {
    Ep& object = Ep::from(ep);
    if (object.core() == nullptr) {
      if (const int status = object.enable()) return status;
    }
    return object.connector()->accept(private_data(data, length));
  });
}

int shutdown(fid_ep* ep, std::uint64_t flags) {
  if (flags != 0) return -FI_EBADFLAGS;
  Ep& object = Ep::from(ep);
  if (object.core() == nullptr) return -FI_ENOTCONN;
  return at_c_border([&] { return object.connector()->shut_down(); });
}

constexpr auto kForDatagrams = [](fi_ops_cm& table) {
  table.getname = get_name<Ep>;
  table.setname = set_name<Ep>;
  table.join = join_group;
};

}  // namespace

fi_ops_cm* datagram_cm_operations() { return operations_with<fi_ops_cm>(kForDatagrams); }

fi_ops_cm* connection_cm_operations() {
  return operations_with<fi_ops_cm>([](fi_ops_cm& table) {
    kForDatagrams(table);
    table.getpeer = getpeer;
    table.connect = connect;
    table.accept = accept;
    table.shutdown = shutdown;
  });
}

}  // namespace weft::fabric
