// SPDX-License-Identifier: BSD-2-Clause
// From which local address to which peer? What node, service, flags and hinted addresses mean.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/offered_devices.h"
#include "os/interfaces.h"

namespace weft::fabric {

// The names and addresses in a call of fi_getinfo(3); every pointer may be null.
struct AddressQuery {
  const char* node = nullptr;
  const char* service = nullptr;
  std::uint64_t flags = 0;  // FI_SOURCE, FI_NUMERICHOST; others are ignored
  const fi_info* hints = nullptr;
};

// A local address and, when the caller named a peer, the peer's.
struct AddressPair {
  std::string domain;        // of the device that has the source address
  std::string fabric;        // its subnet, "192.0.2.0/24"
  os::SocketAddress source;  // port 0 unless the caller gave one
  std::optional<os::SocketAddress> destination;
  std::size_t path_mtu = 0;  // of the device: bytes that one packet carries
};

// Every pair that fits, best first: devices in their order, IPv4 before IPv6.
//  * No peer named: one pair per device and address family, or the named source address only.
//    With FI_SOURCE, node and service name the source, otherwise the hints do.
//  * A peer named (node and service without FI_SOURCE, or else the hints): one pair per address of
//    it; the source is the named one, or what the kernel's routing table says.
// addr_format in the hints selects the family. May block on a name server.
// Errors: EINVAL for FI_SOURCE without node and service; FI_ENODATA when nothing fits.
Result<std::vector<AddressPair>> pair_addresses(const AddressQuery& query,
                                                const std::vector<device::OfferedDevice>& devices);

// AF_INET or AF_INET6, or AF_UNSPEC for both, as FI_SOCKADDR_* says. Errors: FI_ENODATA for address
// formats that are not those of IP.
Result<int> family_of(std::uint32_t address_format);

}  // namespace weft::fabric
