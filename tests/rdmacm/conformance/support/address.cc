// SPDX-License-Identifier: BSD-2-Clause
// How does a test write a socket address?
#include "address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <unistd.h>

#include <cstring>

namespace weft::rdmacm_conformance {

Address::Address(const char* host, std::uint16_t port) {
  auto& ipv4 = reinterpret_cast<sockaddr_in&>(storage_);
  auto& ipv6 = reinterpret_cast<sockaddr_in6&>(storage_);
  if (::inet_pton(AF_INET, host, &ipv4.sin_addr) == 1) {
    ipv4.sin_family = AF_INET;
    ipv4.sin_port = htons(port);
  } else {
    EXPECT_EQ(::inet_pton(AF_INET6, host, &ipv6.sin6_addr), 1) << host;
    ipv6.sin6_family = AF_INET6;
    ipv6.sin6_port = htons(port);
  }
}

Address Address::of(const sockaddr* address) {
  Address copy;
  const bool is_ipv4 = address->sa_family == AF_INET;
  std::memcpy(&copy.storage_, address, is_ipv4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  return copy;
}

socklen_t Address::length() const {
  return storage_.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

std::string Address::text() const {
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "";
  const int failed = ::getnameinfo(get(), length(), host, sizeof host, port, sizeof port,
                                   NI_NUMERICHOST | NI_NUMERICSERV);
  return failed != 0 ? "no address" : std::string(host) + ' ' + port;
}

std::uint16_t source_port(rdma_cm_id& id) { return ntohs(rdma_get_src_port(&id)); }
std::uint16_t destination_port(rdma_cm_id& id) { return ntohs(rdma_get_dst_port(&id)); }

BoundSocket::BoundSocket(const Address& address)
    : fd_(::socket(address.get()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  EXPECT_GE(fd_, 0);
  EXPECT_EQ(errno_of(::bind(fd_, address.get(), address.length())), 0);
}

BoundSocket::~BoundSocket() { ::close(fd_); }

std::uint16_t BoundSocket::port() const {
  sockaddr_in6 address{};  // its port is where that of sockaddr_in is
  socklen_t length = sizeof address;
  EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length), 0);
  return ntohs(address.sin6_port);
}

std::uint16_t free_port() {
  const BoundSocket socket(Address{kIpv6Any});
  return socket.port();
}

}  // namespace weft::rdmacm_conformance
