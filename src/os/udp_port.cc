// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint get an address of its own?
#include "os/udp_port.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <utility>

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

namespace {

void set_sharing(const Fd& fd, int shares) {
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &shares, sizeof shares);
}

Result<Fd> bind_socket(const SocketAddress& wanted, bool shares) {
  Fd fd(::socket(wanted.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return last_error("cannot open a UDP socket");
  const int yes = 1;
  if (wanted.family() == AF_INET6) {
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
  }
  if (shares) set_sharing(fd, 1);
  if (::bind(fd.get(), wanted.get(), wanted.length()) != 0) {
    return last_error("cannot bind " + wanted.text());
  }
  return fd;
}

bool is_link_local(const SocketAddress& address) {
  return address.family() == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr);
}

// How /proc/net/udp and udp6 write it: words as they lie in memory, and the port.
std::string as_listed(const SocketAddress& address) {
  const bool v6 = address.family() == AF_INET6;
  const void* raw = &reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr;
  if (v6) raw = &reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr;
  std::array<std::uint32_t, 4> words{};
  const std::size_t count = v6 ? 4 : 1;
  std::memcpy(words.data(), raw, 4 * count);
  std::ostringstream text;
  text << std::hex << std::uppercase << std::setfill('0');
  for (std::size_t i = 0; i < count; ++i) text << std::setw(8) << words[i];
  text << ':' << std::setw(4) << address.port();
  return text.str();
}

}  // namespace

Result<SocketAddress> bound_to(const Fd& socket) {
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &length);
  return SocketAddress::parse(&bound, length);
}

Fd UdpPort::open() const {
  sockaddr nobody{};
  nobody.sa_family = AF_UNSPEC;
  // It never fails; if it did, nobody would be heard.
  static_cast<void>(::connect(socket_.get(), &nobody, sizeof nobody));
  return Fd(::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0));
}

// A socket that is connected to itself hears nobody else, and the kernel says so to those who try.
// It keeps its port when it is not connected any more, if it asked for that very port: so another
// one finds out which is free, and they share it for a moment.
Result<UdpPort> UdpPort::bind(const SocketAddress& wanted) {
  UdpPort port;
  Fd finder;
  port.address_ = wanted;
  if (wanted.port() == 0) {
    auto found = bind_socket(wanted, false);
    if (!found) return found.error();
    finder = std::move(found).value();
    auto address = bound_to(finder);
    if (!address) return address.error();
    port.address_ = address.value();
    set_sharing(finder, 1);  // only now: it must not have found a port that others share
  }
  auto socket = bind_socket(port.address_, finder.valid());
  if (!socket) return socket.error();
  port.socket_ = std::move(socket).value();
  set_sharing(port.socket_, 0);
  // Nothing reads this socket yet; what strangers send to it must not pile up.
  const int least = 1;
  ::setsockopt(port.socket_.get(), SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
  if (!port.address_.is_any() && !is_link_local(port.address_)) {
    // If that fails those who try wait in vain, no more.
    static_cast<void>(::connect(port.socket_.get(), port.address_.get(), port.address_.length()));
  }
  return port;
}

// Columns of that file: number, address, peer's address, state (07: not connected).
bool somebody_listens(const SocketAddress& address) {
  const bool v6 = address.family() == AF_INET6;
  const std::string own = as_listed(address);
  const std::string any = std::string(v6 ? 32 : 8, '0') + own.substr(own.find(':'));
  std::ifstream list(v6 ? "/proc/net/udp6" : "/proc/net/udp");
  for (std::string line; std::getline(list, line);) {
    std::istringstream columns(line);
    std::string number, local, peer, state;
    columns >> number >> local >> peer >> state;
    if ((local == own || local == any) && state == "07") return true;
  }
  return false;
}

}  // namespace weft::os
