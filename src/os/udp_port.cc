// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint get an address of its own?
#include "os/udp_port.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>

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
  const void* raw = family() == AF_INET6 ? static_cast<const void*>(&storage_.v6.sin6_addr)
                                         : static_cast<const void*>(&storage_.v4.sin_addr);
  if (family() != AF_UNSPEC) ::inet_ntop(family(), raw, text, sizeof text);
  return text;
}

std::string SocketAddress::text() const {
  const std::string name = family() == AF_INET6 ? "[" + host() + "]" : host();
  return name + ":" + std::to_string(port());
}

bool SocketAddress::operator==(const SocketAddress& other) const {
  if (family() != other.family() || port() != other.port()) return false;
  if (family() == AF_INET6) {
    return std::memcmp(&storage_.v6.sin6_addr, &other.storage_.v6.sin6_addr, 16) == 0 &&
           storage_.v6.sin6_scope_id == other.storage_.v6.sin6_scope_id;
  }
  return storage_.v4.sin_addr.s_addr == other.storage_.v4.sin_addr.s_addr;
}

Fd UdpPort::duplicate() const { return Fd(::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0)); }

Result<UdpPort> UdpPort::bind(const SocketAddress& wanted) {
  UdpPort port;
  port.socket_.reset(::socket(wanted.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!port.socket_.valid()) return last_error("cannot open a UDP socket");
  const int only_v6 = 1;
  if (wanted.family() == AF_INET6) {
    ::setsockopt(port.socket_.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof only_v6);
  }
  // Nothing reads this socket yet; what strangers send to it must not pile up.
  const int least = 1;
  ::setsockopt(port.socket_.get(), SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
  if (::bind(port.socket_.get(), wanted.get(), wanted.length()) != 0) {
    return last_error("cannot bind " + wanted.text());
  }
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  ::getsockname(port.socket_.get(), reinterpret_cast<sockaddr*>(&bound), &length);
  Result<SocketAddress> address = SocketAddress::parse(&bound, length);
  if (!address) return address.error();
  port.address_ = address.value();
  return port;
}

}  // namespace weft::os
