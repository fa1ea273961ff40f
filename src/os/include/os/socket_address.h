// SPDX-License-Identifier: BSD-2-Clause
// Where is a UDP socket: an IPv4 or IPv6 address with a port?
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "base/result.h"

namespace weft::os {

// An IPv4 or IPv6 address with a UDP port.
class SocketAddress {
 public:
  SocketAddress() { std::memset(&storage_, 0, sizeof storage_); }
  // Takes `length` bytes that a caller or a peer gave. Errors: EINVAL when they are no complete
  // sockaddr_in or sockaddr_in6.
  static Result<SocketAddress> parse(const void* bytes, std::size_t length);
  // Of the 16 bytes of an IPv6 address (AF_INET6), else of the 4 of an IPv4 one, in network order.
  static SocketAddress of_host(int family, const void* host, std::uint16_t port,
                               std::uint32_t scope = 0);

  const sockaddr* get() const { return &storage_.generic; }
  // Bytes of the sockaddr structure; 0 when empty.
  socklen_t length() const;
  // AF_INET, AF_INET6, or AF_UNSPEC when empty.
  int family() const { return storage_.generic.sa_family; }
  // In host byte order.
  std::uint16_t port() const;
  void set_port(std::uint16_t port);
  // True for 0.0.0.0 and ::.
  bool is_any() const;
  bool is_link_local() const;  // IPv6: of one link, hence meaningless without its interface
  // True for 224.0.0.0/4 and ff00::/8.
  bool is_multicast() const;
  // "192.0.2.1" or "2001:db8::1".
  std::string host() const;
  // The same in network byte order: 4 bytes, or 16 of IPv6.
  std::span<const std::byte> host_bytes() const;
  // Which link a link-local IPv6 host is on; else 0.
  std::uint32_t scope() const { return family() == AF_INET6 ? storage_.v6.sin6_scope_id : 0; }
  // "192.0.2.1:4791" or "[2001:db8::1]:4791".
  std::string text() const;
  // Inline: each packet is compared.
  bool operator==(const SocketAddress& other) const {
    if (family() != other.family() || storage_.v6.sin6_port != other.storage_.v6.sin6_port) {
      return false;
    }
    if (family() != AF_INET6) {
      return storage_.v4.sin_addr.s_addr == other.storage_.v4.sin_addr.s_addr;
    }
    return std::memcmp(&storage_.v6.sin6_addr, &other.storage_.v6.sin6_addr, 16) == 0 &&
           storage_.v6.sin6_scope_id == other.storage_.v6.sin6_scope_id;
  }

 private:
  union {
    sockaddr generic;
    sockaddr_in v4;
    sockaddr_in6 v6;
  } storage_;
};

}  // namespace weft::os
