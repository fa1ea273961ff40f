// SPDX-License-Identifier: BSD-2-Clause
// Which GIDs does the port of a device have?
#include "verbs/gid_table.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "verbs/limits.h"

namespace weft::verbs {

GidBytes gid_of(const os::SocketAddress& address) {
  GidBytes gid{};
  if (address.family() == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address.get());
    std::memcpy(gid.data(), &v6->sin6_addr, gid.size());
  } else {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address.get());
    gid[10] = gid[11] = 0xFF;
    std::memcpy(gid.data() + 12, &v4->sin_addr, 4);
  }
  return gid;
}

GidTable::GidTable(const os::Interface& interface) : distinct_(interface.addresses.size()) {
  for (const os::InterfaceAddress& each : interface.addresses) {
    rows_.push_back({gid_of(each.address), each.address});
  }
  const OwnGid first = rows_.front();
  rows_.resize(std::max<std::size_t>(rows_.size(), Limits::kGidsAtLeast), first);
}

const OwnGid* GidTable::find(std::uint64_t index) const {
  return index < rows_.size() ? &rows_[index] : nullptr;
}

int GidTable::index_of(const GidBytes& gid) const {
  const auto found = std::ranges::find(rows_, gid, &OwnGid::gid);
  return found == rows_.end() ? -1 : static_cast<int>(found - rows_.begin());
}

}  // namespace weft::verbs
