// SPDX-License-Identifier: BSD-2-Clause
// How do GIDs and IP addresses correspond?
#include "gid.h"

#include <netinet/in.h>

#include <cstring>

namespace weft::verbs {
namespace {

constexpr unsigned char kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

}  // namespace

os::SocketAddress address_of_gid(const ibv_gid& gid) {
  if (std::memcmp(gid.raw, kMapped, sizeof kMapped) == 0) {
    return os::SocketAddress::of_host(AF_INET, gid.raw + sizeof kMapped, 0);
  }
  return os::SocketAddress::of_host(AF_INET6, gid.raw, 0);
}

ibv_gid gid_of(const os::SocketAddress& address) {
  ibv_gid gid{};
  if (address.family() == AF_INET6) {
    std::memcpy(gid.raw, &reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr, 16);
  } else {
    std::memcpy(gid.raw, kMapped, sizeof kMapped);
    std::memcpy(gid.raw + sizeof kMapped,
                &reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr, 4);
  }
  return gid;
}

}  // namespace weft::verbs
