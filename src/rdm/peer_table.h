// SPDX-License-Identifier: BSD-2-Clause
// Which flows does an endpoint have with the endpoint at some address?
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "os/socket_address.h"
#include "roce/address_hash.h"
#include "roce/path.h"

namespace weft::rdm {

// Numbers of contexts.
struct PeerContexts {
  std::uint32_t out = 0;                 // 0: none
  std::vector<std::uint32_t> in;         // usually one
  std::vector<std::uint32_t> pairs;      // of flows, the oldest first
  std::weak_ptr<const roce::Path> path;  // that all of them use
};

// By address. A peer without a flow has no entry.
using PeerTable = std::unordered_map<os::SocketAddress, PeerContexts, roce::AddressHash>;

}  // namespace weft::rdm
