// SPDX-License-Identifier: BSD-2-Clause
// Which flows does an endpoint have with the endpoint at some address?
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "os/udp_port.h"
#include "trains.h"

namespace weft::udp {

// Numbers of contexts.
struct Neighbour {
  std::uint32_t out = 0;          // 0: none
  std::vector<std::uint32_t> in;  // usually one
  std::weak_ptr<const Way> way;   // that all of them use
};

struct AddressHash {
  std::size_t operator()(const os::SocketAddress& address) const {
    char bytes[16 + sizeof(std::uint16_t)] = {};
    const std::uint16_t port = address.port();
    std::memcpy(bytes, &port, sizeof port);
    if (address.family() == AF_INET6) {
      std::memcpy(bytes + sizeof port,
                  &reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr, 16);
    } else {
      std::memcpy(bytes + sizeof port,
                  &reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr, 4);
    }
    return std::hash<std::string_view>()({bytes, sizeof bytes});
  }
};

// By address. Whoever has no flow is not there.
using Neighbours = std::unordered_map<os::SocketAddress, Neighbour, AddressHash>;

}  // namespace weft::udp
