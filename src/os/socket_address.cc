// SPDX-License-Identifier: BSD-2-Clause
// Where is a UDP socket: an IPv4 or IPv6 address with a port?
#include "os/socket_address.h"

#include <arpa/inet.h>

namespace weft::os {

Result<SocketAddress> SocketAddress::parse(const void* bytes, std::size_t length) {
  SocketAddress address;
  sa_family_t family = AF_UNSPEC;
  if (bytes != nullptr && length >= sizeof family) std::memcpy(&family, bytes, sizeof family);
  if (family == AF_INET && length >= sizeof(sockaddr_in)) {
    std::memcpy(&address.storage_.v4, bytes, sizeof(sockaddr_in));
    std::memset(address.storage_.v4.sin_zero, 0, sizeof address.storage_.v4.sin_zero);
    return address;
  }
  if (family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
    std::memcpy(&address.storage_.v6, bytes, sizeof(sockaddr_in6));
    address.storage_.v6.sin6_flowinfo = 0;
    return address;
  }
  return Error{EINVAL, "not an IPv4 or IPv6 socket address"};
}

SocketAddress SocketAddress::of_host(int family, const void* host, std::uint16_t port,
                                     std::uint32_t scope) {
  SocketAddress address;
  if (family == AF_INET6) {
    address.storage_.v6.sin6_family = AF_INET6;
    address.storage_.v6.sin6_scope_id = scope;
    std::memcpy(&address.storage_.v6.sin6_addr, host, sizeof(in6_addr));
  } else {
    address.storage_.v4.sin_family = AF_INET;
    std::memcpy(&address.storage_.v4.sin_addr, host, sizeof(in_addr));
  }
  address.set_port(port);
  return address;
}

socklen_t SocketAddress::length() const {
  if (family() == AF_INET) return sizeof(sockaddr_in);
  return family() == AF_INET6 ? sizeof(sockaddr_in6) : 0;
}

std::uint16_t SocketAddress::port() const {
  return ntohs(family() == AF_INET6 ? storage_.v6.sin6_port : storage_.v4.sin_port);
}

void SocketAddress::set_port(std::uint16_t port) {
  (family() == AF_INET6 ? storage_.v6.sin6_port : storage_.v4.sin_port) = htons(port);
}

bool SocketAddress::is_link_local() const {
  return family() == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(get())->sin6_addr);
}

bool SocketAddress::is_any() const {
  if (family() == AF_INET6) return IN6_IS_ADDR_UNSPECIFIED(&storage_.v6.sin6_addr);
  return storage_.v4.sin_addr.s_addr == htonl(INADDR_ANY);
}

bool SocketAddress::is_multicast() const {
  if (family() == AF_INET6) return IN6_IS_ADDR_MULTICAST(&storage_.v6.sin6_addr);
  return family() == AF_INET && IN_MULTICAST(ntohl(storage_.v4.sin_addr.s_addr));
}

std::string SocketAddress::host() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (family() != AF_UNSPEC) ::inet_ntop(family(), host_bytes().data(), text, sizeof text);
  return text;
}

std::span<const std::byte> SocketAddress::host_bytes() const {
  if (family() == AF_INET6) return std::as_bytes(std::span(&storage_.v6.sin6_addr, 1));
  return std::as_bytes(std::span(&storage_.v4.sin_addr, 1));
}

std::string SocketAddress::text() const {
  const std::string name = family() == AF_INET6 ? "[" + host() + "]" : host();
  return name + ":" + std::to_string(port());
}

}  // namespace weft::os
