// SPDX-License-Identifier: BSD-2-Clause
// How does a program call a passive endpoint? fi_passive_ep of fi_endpoint(3), fi_cm(3)
#include "boundary.h"
#include "fid_object.h"
#include "name.h"
#include "offer.h"
#include "operations.h"
#include "pep.h"

namespace weft::fabric {
namespace {

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

int listen(fid_pep* pep) {
  return at_c_border([&] { return PassiveEndpoint::from(&pep->fid).listen(); });
}

int reject(fid_pep* pep, fid* handle, const void* data, std::size_t length) {
  if (length > kConnectionData || (data == nullptr && length != 0)) return -FI_EINVAL;
  return at_c_border([&] { return PassiveEndpoint::from(&pep->fid).reject(handle, data, length); });
}

constexpr FidCalls kPepCalls{.close = close_object<PassiveEndpoint>,
                             .bind = bind_event_queue<PassiveEndpoint, EventQueue>,
                             .control = control_pep};

}  // namespace

fi_ops* pep_fid_operations() { return fid_operations<kPepCalls>(); }

fi_ops_ep* pep_operations() {
  return operations_with<fi_ops_ep>([](fi_ops_ep& table) {
    table.getopt = getopt_pep;
    table.setopt = setopt_pep;
  });
}

fi_ops_cm* pep_cm_operations() {
  return operations_with<fi_ops_cm>([](fi_ops_cm& table) {
    table.getname = get_name<PassiveEndpoint>;
    table.setname = set_name<PassiveEndpoint>;
    table.listen = listen;
    table.reject = reject;
  });
}

}  // namespace weft::fabric
