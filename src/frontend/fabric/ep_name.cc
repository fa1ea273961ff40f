// SPDX-License-Identifier: BSD-2-Clause
// By which address is an endpoint known? fi_cm(3)
#include <algorithm>
#include <cstring>

#include "boundary.h"
#include "ep.h"
#include "unsupported.h"

namespace weft::fabric {
namespace {

int getname(fid* fid, void* buffer, std::size_t* length) {
  if (length == nullptr || (buffer == nullptr && *length != 0)) return -FI_EINVAL;
  return at_c_border([&] {
    const os::SocketAddress name = Endpoint::from(fid).name();
    const std::size_t size = name.length();
    if (buffer != nullptr) std::memcpy(buffer, name.get(), std::min(size, *length));
    const bool fits = *length >= size;
    *length = size;
    return fits ? 0 : -FI_ETOOSMALL;
  });
}

int setname(fid* fid, void* bytes, std::size_t length) {
  return at_c_border([&] {
    const auto address = os::SocketAddress::parse(bytes, length);
    return address ? Endpoint::from(fid).rename(address.value()) : -FI_EINVAL;
  });
}

}  // namespace

fi_ops_cm* cm_operations() {
  static fi_ops_cm table = [] {
    fi_ops_cm operations = unsupported_operations<fi_ops_cm>();
    operations.getname = getname;
    operations.setname = setname;
    operations.join = join_group;
    return operations;
  }();
  return &table;
}

}  // namespace weft::fabric
