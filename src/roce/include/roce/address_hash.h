// SPDX-License-Identifier: BSD-2-Clause
// How are the addresses of peers told apart in a table?
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "os/runtime_dir.h"
#include "os/socket_address.h"

namespace weft::roce {

// Each table draws its seed at random, so that a peer cannot choose addresses that collide.
class AddressHash {
 public:
  std::size_t operator()(const os::SocketAddress& address) const {
    std::array<std::uint64_t, 3> words{};
    if (address.family() == AF_INET6) {
      const auto& raw = *reinterpret_cast<const sockaddr_in6*>(address.get());
      std::memcpy(words.data(), &raw.sin6_addr, sizeof raw.sin6_addr);
      words[2] = std::uint64_t{raw.sin6_scope_id} << 32 | raw.sin6_port;
    } else {
      const auto& raw = *reinterpret_cast<const sockaddr_in*>(address.get());
      words[0] = std::uint64_t{raw.sin_addr.s_addr} << 32 | raw.sin_port;
    }
    std::uint64_t hash = seed_;
    for (const std::uint64_t word : words) {
      hash = (hash ^ word) * 0x9E37'79B9'7F4A'7C15;
      hash ^= hash >> 32;
    }
    return hash;
  }

 private:
  std::uint64_t seed_ = os::random_number();
};

}  // namespace weft::roce
