// SPDX-License-Identifier: BSD-2-Clause
// How do addresses and connection data go between libfabric's calls and weft's types? fi_cm(3)
#include "name.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "offer.h"
#include "os/interfaces.h"

namespace weft::fabric {

Result<os::SocketAddress> wanted_address(const fi_info& info) {
  if (info.src_addr != nullptr) return os::SocketAddress::parse(info.src_addr, info.src_addrlen);
  const int family = info.addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
  return os::SocketAddress::of_host(family, &in6addr_any, 0);
}

std::size_t address_length(const void* bytes) {
  sa_family_t family = AF_UNSPEC;
  std::memcpy(&family, bytes, sizeof family);
  return family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

Result<os::SocketAddress> address_at(const void* bytes) {
  return os::SocketAddress::parse(bytes, address_length(bytes));
}

os::SocketAddress name_of(const os::UdpPort& port) {
  const os::SocketAddress bound = port.address();
  if (!bound.is_any()) return bound;
  const auto interfaces = os::usable_interfaces();
  if (!interfaces) return bound;
  for (const auto& interface : interfaces.value()) {
    for (const auto& own : interface.addresses) {
      os::SocketAddress usable = own.address;
      if (usable.family() != bound.family()) continue;
      usable.set_port(bound.port());
      return usable;
    }
  }
  return bound;
}

os::SocketAddress name_of(const os::UdpPort& port, os::SocketAddress asked) {
  const os::SocketAddress bound = port.address();
  if (!bound.is_any() || asked.family() != bound.family() || asked.is_any()) return name_of(port);
  asked.set_port(bound.port());
  return asked;
}

int give_address(const os::SocketAddress& address, void* buffer, std::size_t* length) {
  if (length == nullptr || (buffer == nullptr && *length != 0)) return -FI_EINVAL;
  const std::size_t size = address.length();
  if (buffer != nullptr) std::memcpy(buffer, address.get(), std::min(size, *length));
  const bool fits = *length >= size;
  *length = size;
  return fits ? 0 : -FI_ETOOSMALL;
}

bool write_address(const os::SocketAddress& address, void*& bytes, std::size_t& length) {
  void* copy = std::malloc(address.length());
  if (copy == nullptr) return false;
  std::memcpy(copy, address.get(), address.length());
  std::free(bytes);
  bytes = copy;
  length = address.length();
  return true;
}

std::span<const std::byte> private_data(const void* data, std::size_t length) {
  return {static_cast<const std::byte*>(data), length};
}

namespace {

template <class Option>
int give(Option option, void* value, std::size_t* length) {
  if (length == nullptr || (value == nullptr && *length != 0)) return -FI_EINVAL;
  const bool fits = *length >= sizeof option;
  *length = sizeof option;
  if (!fits) return -FI_ETOOSMALL;
  std::memcpy(value, &option, sizeof option);
  return 0;
}

}  // namespace

int give_option(std::size_t option, void* value, std::size_t* length) {
  return give(option, value, length);
}

int give_option(int option, void* value, std::size_t* length) {
  return give(option, value, length);
}

}  // namespace weft::fabric
