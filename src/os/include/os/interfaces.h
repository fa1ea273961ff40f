// SPDX-License-Identifier: BSD-2-Clause
// Which network interfaces and addresses does this host have, and which one leads to a peer?
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "os/udp_port.h"

namespace weft::os {

// An address of an interface (port 0) and how many of its leading bits name the subnet.
struct InterfaceAddress {
  SocketAddress address;
  unsigned prefix_length = 0;
};

// A network interface that can carry traffic now, with at least one address.
struct Interface {
  std::string name;
  unsigned index = 0;  // the kernel's number of it
  bool loopback = false;
  std::vector<InterfaceAddress> addresses;  // IPv4 before IPv6; link-local IPv6 left out
  bool multicast = false;                   // groups may be joined on it
  std::size_t mtu = 0;                      // bytes that one packet may have; 0: not known
};

// Every interface of this network namespace that is up and running and has an address, ordered by
// kernel index with the loopback interface last, so that two processes number them alike.
// Errors: those of getifaddrs(3). Any thread.
Result<std::vector<Interface>> usable_interfaces();

// True when an endpoint of this host can be bound to `address` (its port is ignored): it belongs
// to an interface, or lies in the loopback network. False for NULL and for any other family.
bool is_local_address(const sockaddr* address);

// The entry of `interface` that `address` belongs to (its port is ignored), or null. All of
// 127.0.0.0/8 belongs to the entry of the loopback interface.
const InterfaceAddress* entry_of(const Interface& interface, const SocketAddress& address);

// The interface that has such an entry, or null.
const Interface* owner_of(const std::vector<Interface>& interfaces, const SocketAddress& address);

// The local address (port 0) that the kernel's routing table would use towards `destination`.
// Sends nothing. Errors: ENETUNREACH and others of connect(2).
Result<SocketAddress> source_towards(const SocketAddress& destination);

// The subnet of an address in CIDR notation: "192.0.2.0/24", "2001:db8::/64".
std::string subnet_text(const InterfaceAddress& address);

// True when `address` lies in the subnet of `of`.
bool in_subnet(const InterfaceAddress& of, const SocketAddress& address);

}  // namespace weft::os
