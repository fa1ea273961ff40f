// SPDX-License-Identifier: BSD-2-Clause
// How does a program call a passive endpoint? fi_passive_ep of fi_endpoint(3), fi_cm(3)
#include "boundary.h"
#include "fid_calls.h"
#include "name.h"
#include "offer.h"
#include "pep.h"
#include "unsupported.h"

namespace weft::fabric {
namespace {

int bind_pep(fid* fid, struct fid* object, std::uint64_t flags) {
  if (object == nullptr) return -FI_EINVAL;
  return at_c_border([&] { return PassiveEndpoint::from(fid).bind(object, flags); });
}

int control_pep(fid* fid, int command, void* argument) {
  if (command != FI_BACKLOG) return -FI_ENOSYS;
  if (argument == nullptr) return -FI_EINVAL;
  return at_c_border(
      [&] { return PassiveEndpoint::from(fid).set_backlog(*static_cast<const int*>(argument)); });
}

int getopt_pep(fid*, int level, int name, void* value, std::size_t* length) {
  if (level != FI_OPT_ENDPOINT || name != FI_OPT_CM_DATA_SIZE) return -FI_ENOPROTOOPT;
  return give_option(kConnectionData, value, length);
}

int setopt_pep(fid*, int, int, const void*, std::size_t) { return -FI_ENOPROTOOPT; }

int getname_pep(fid* fid, void* buffer, std::size_t* length) {
  return at_c_border([&] {
    const os::SocketAddress name = PassiveEndpoint::from(fid).name();
    return name.length() == 0 ? -FI_EADDRNOTAVAIL : give_address(name, buffer, length);
  });
}

int setname_pep(fid* fid, void* bytes, std::size_t length) {
  return at_c_border([&] {
    const auto address = os::SocketAddress::parse(bytes, length);
    return address ? PassiveEndpoint::from(fid).rename(address.value()) : -FI_EINVAL;
  });
}

int listen(fid_pep* pep) {
  return at_c_border([&] { return PassiveEndpoint::from(&pep->fid).listen(); });
}

int reject(fid_pep* pep, fid* handle, const void* data, std::size_t length) {
  if (length > kConnectionData || (data == nullptr && length != 0)) return -FI_EINVAL;
  return at_c_border([&] { return PassiveEndpoint::from(&pep->fid).reject(handle, data, length); });
}

}  // namespace

fi_ops* pep_fid_operations() {
  static fi_ops table = fid_operations(
      {.close = close_object<PassiveEndpoint>, .bind = bind_pep, .control = control_pep});
  return &table;
}

fi_ops_ep* pep_operations() {
  return operations_with<fi_ops_ep>([](fi_ops_ep& table) {
    table.getopt = getopt_pep;
    table.setopt = setopt_pep;
  });
}

fi_ops_cm* pep_cm_operations() {
  return operations_with<fi_ops_cm>([](fi_ops_cm& table) {
    table.getname = getname_pep;
    table.setname = setname_pep;
    table.listen = listen;
    table.reject = reject;
  });
}

}  // namespace weft::fabric
