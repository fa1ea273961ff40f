// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint get an address of its own?
#pragma once

#include <netinet/in.h>

#include <cstring>
#include <string>

#include "base/result.h"
#include "os/fd.h"

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

// Holds a UDP port of this network namespace. Until a UdpSocket takes it over, this host answers
// datagrams with an ICMP error (port unreachable); not so for the unspecified address and for
// link-local ones.
class UdpPort {
 public:
  // Binds `wanted` (port 0: any free one). Errors: EADDRINUSE, EADDRNOTAVAIL, others of bind(2).
  static Result<UdpPort> bind(const SocketAddress& wanted);
  // What was bound, with the port that was chosen.
  const SocketAddress& address() const { return address_; }
  // A descriptor of the socket, which is open to everybody from now on; invalid when there are too
  // many (errno).
  Fd open() const;

 private:
  bool take_turns() const;

  Fd socket_;
  SocketAddress address_;
};

// How many ports one local address has for sockets that let the kernel choose
// (net.ipv4.ip_local_port_range), without those below 32768, which name no endpoint.
std::size_t free_ports();

// The address that a socket is bound to. Errors: EINVAL when it is none of IPv4 or IPv6.
Result<SocketAddress> bound_to(const Fd& socket);

// Whether a socket of this network namespace takes in what anybody sends to that address. Never
// false while one does; where the kernel cannot be asked about one address, true for want of an
// answer while sockets come and go too fast.
bool somebody_listens(const SocketAddress& address);

}  // namespace weft::os
