// SPDX-License-Identifier: BSD-2-Clause
// Which GIDs does the port of a device have?
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "os/interfaces.h"

namespace weft::verbs {

// The 16 octets of a GID, in network order.
using GidBytes = std::array<std::uint8_t, 16>;

// The GID of RoCE v2 that stands for an address: IPv4 as ::ffff:a.b.c.d, IPv6 as it is.
GidBytes gid_of(const os::SocketAddress& address);

// A row of the table.
struct OwnGid {
  GidBytes gid{};
  os::SocketAddress address;  // port 0
};

// The GID table of the one port of a device: the addresses of its interface, IPv4 first. It has
// Limits::kGidsAtLeast rows or more, none of them empty: the first GID is repeated where there are
// fewer addresses.
class GidTable {
 public:
  // The interface has at least one address.
  explicit GidTable(const os::Interface& interface);

  // Rows.
  std::size_t size() const { return rows_.size(); }
  // How many of them are not repeated.
  std::size_t distinct() const { return distinct_; }
  // The row of that index, or null beyond the end.
  const OwnGid* find(std::uint64_t index) const;
  // The index of the first row with that GID, or -1.
  int index_of(const GidBytes& gid) const;

 private:
  std::vector<OwnGid> rows_;
  std::size_t distinct_ = 0;
};

}  // namespace weft::verbs
