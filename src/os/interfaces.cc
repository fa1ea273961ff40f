// SPDX-License-Identifier: BSD-2-Clause
// Which network interfaces and addresses does this host have, and which one leads to a peer?
#include "os/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <span>

#include "os/cancellation.h"
#include "os/udp_path.h"

namespace weft::os {
namespace {

using ByteSpan = std::span<std::byte>;

std::size_t structure_size(int family) {
  if (family == AF_INET) return sizeof(sockaddr_in);
  return family == AF_INET6 ? sizeof(sockaddr_in6) : 0;
}

Result<SocketAddress> parse(const sockaddr* address) {
  if (address == nullptr) return Error{EINVAL, "no address"};
  return SocketAddress::parse(address, structure_size(address->sa_family));
}

// The raw address, without port, inside a structure of the right family.
ByteSpan host_bytes(sockaddr_storage& storage) {
  if (storage.ss_family == AF_INET6) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
    return std::as_writable_bytes(std::span(v6->sin6_addr.s6_addr));
  }
  auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
  return std::as_writable_bytes(std::span(&v4->sin_addr.s_addr, 1));
}

sockaddr_storage copy_of(const SocketAddress& address) {
  sockaddr_storage storage{};
  std::memcpy(&storage, address.get(), address.length());
  return storage;
}

unsigned leading_ones(ByteSpan mask) {
  unsigned bits = 0;
  for (std::byte byte : mask) bits += std::popcount(std::to_integer<unsigned>(byte));
  return bits;
}

// The address with every bit behind the prefix cleared, and port 0.
SocketAddress network_of(const SocketAddress& address, unsigned prefix_length) {
  SocketAddress network = address;
  network.set_port(0);
  sockaddr_storage storage = copy_of(network);
  unsigned left = prefix_length;
  for (std::byte& byte : host_bytes(storage)) {
    const unsigned kept = std::min(left, 8U);
    byte &= static_cast<std::byte>(0xFF00U >> kept);
    left -= kept;
  }
  return SocketAddress::parse(&storage, address.length()).value();
}

bool usable(const ifaddrs& entry) {
  constexpr unsigned kNeeded = IFF_UP | IFF_RUNNING;
  if ((entry.ifa_flags & kNeeded) != kNeeded) return false;
  const Result<SocketAddress> address = parse(entry.ifa_addr);
  return address.ok() && !address.value().is_link_local();
}

InterfaceAddress interface_address(const ifaddrs& entry) {
  const SocketAddress address = parse(entry.ifa_addr).value();
  sockaddr_storage mask{};
  std::memset(&mask, 0xFF, sizeof mask);  // an address without a mask is a subnet of its own
  if (entry.ifa_netmask != nullptr) std::memcpy(&mask, entry.ifa_netmask, address.length());
  mask.ss_family = static_cast<sa_family_t>(address.family());
  return {address, leading_ones(host_bytes(mask))};
}

std::size_t mtu_of(const char* interface) {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, interface, sizeof request.ifr_name - 1);
  if (::ioctl(socket.get(), SIOCGIFMTU, &request) != 0 || request.ifr_mtu < 0) return 0;
  return static_cast<std::size_t>(request.ifr_mtu);
}

Interface& entry_for(std::vector<Interface>& list, const ifaddrs& entry) {
  const auto found = std::ranges::find(list, entry.ifa_name, &Interface::name);
  if (found != list.end()) return *found;
  Interface& added = list.emplace_back();
  added.name = entry.ifa_name;
  added.index = ::if_nametoindex(entry.ifa_name);
  added.loopback = (entry.ifa_flags & IFF_LOOPBACK) != 0;
  added.multicast = added.loopback || (entry.ifa_flags & IFF_MULTICAST) != 0;
  added.mtu = mtu_of(entry.ifa_name);
  return added;
}

// IPv4 first, otherwise as the kernel listed them.
void put_in_order(std::vector<Interface>& list) {
  std::ranges::stable_sort(list, {}, [](const Interface& interface) {
    return std::pair(interface.loopback, interface.index);
  });
  for (Interface& interface : list) {
    std::ranges::stable_sort(interface.addresses, {}, [](const InterfaceAddress& address) {
      return address.address.family() == AF_INET6;
    });
  }
}

bool same_host(const SocketAddress& a, SocketAddress b) {
  b.set_port(a.port());
  return a == b;
}

}  // namespace

Result<std::vector<Interface>> usable_interfaces() {
  const CancellationOff off;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return last_error("cannot list the network interfaces");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> release(first, &::freeifaddrs);
  std::vector<Interface> list;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (!usable(*entry)) continue;
    entry_for(list, *entry).addresses.push_back(interface_address(*entry));
  }
  put_in_order(list);
  return list;
}

bool is_local_address(const sockaddr* address) {
  const Result<SocketAddress> wanted = parse(address);
  if (!wanted) return false;
  const Result<std::vector<Interface>> interfaces = usable_interfaces();
  return interfaces.ok() && owner_of(interfaces.value(), wanted.value()) != nullptr;
}

const InterfaceAddress* entry_of(const Interface& interface, const SocketAddress& address) {
  const auto found = std::ranges::find_if(interface.addresses, [&](const InterfaceAddress& own) {
    if (same_host(own.address, address)) return true;
    return interface.loopback && own.address.family() == AF_INET && in_subnet(own, address);
  });
  return found == interface.addresses.end() ? nullptr : &*found;
}

const Interface* owner_of(const std::vector<Interface>& interfaces, const SocketAddress& address) {
  const auto found = std::ranges::find_if(interfaces, [&](const Interface& interface) {
    return entry_of(interface, address) != nullptr;
  });
  return found == interfaces.end() ? nullptr : &*found;
}

Result<SocketAddress> source_towards(const SocketAddress& destination) {
  Result<UdpPath> path = udp_path_to(destination);
  if (!path) return path.error();
  return path.value().source;
}

std::string subnet_text(const InterfaceAddress& address) {
  const SocketAddress network = network_of(address.address, address.prefix_length);
  return network.host() + "/" + std::to_string(address.prefix_length);
}

bool in_subnet(const InterfaceAddress& of, const SocketAddress& address) {
  if (of.address.family() != address.family()) return false;
  return network_of(of.address, of.prefix_length) == network_of(address, of.prefix_length);
}

}  // namespace weft::os
