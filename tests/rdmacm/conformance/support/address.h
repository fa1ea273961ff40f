// SPDX-License-Identifier: BSD-2-Clause
// How does a test write a socket address?
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "objects.h"

namespace weft::rdmacm_conformance {

inline constexpr const char* kIpv4Loopback = "127.0.0.1";
inline constexpr const char* kIpv6Loopback = "::1";
inline constexpr const char* kIpv4Any = "0.0.0.0";
inline constexpr const char* kIpv6Any = "::";
// TEST-NET-1 and the documentation prefix: no host has them.
inline constexpr const char* kForeignIpv4 = "192.0.2.1";
inline constexpr const char* kForeignIpv6 = "2001:db8::1";

// A numeric IPv4 or IPv6 address with a port in host byte order.
class Address {
 public:
  explicit Address(const char* host, std::uint16_t port = 0);
  static Address of(const sockaddr* address);
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage_); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const;
  // "host port"
  std::string text() const;

 private:
  Address() = default;
  sockaddr_storage storage_{};
};

// The results of rdma_get_src_port(3) and rdma_get_dst_port(3), in host byte order.
std::uint16_t source_port(rdma_cm_id& id);
std::uint16_t destination_port(rdma_cm_id& id);

// A UDP socket that is bound to that address while it lives.
class BoundSocket {
 public:
  explicit BoundSocket(const Address& address);
  ~BoundSocket();
  BoundSocket(const BoundSocket&) = delete;
  BoundSocket& operator=(const BoundSocket&) = delete;
  std::uint16_t port() const;

 private:
  int fd_;
};

// A port that no socket had a moment ago.
std::uint16_t free_port();

}  // namespace weft::rdmacm_conformance
