// SPDX-License-Identifier: BSD-2-Clause
// From which local address to which peer? What node, service, flags and hinted addresses mean.
#include "resolve.h"

#include <rdma/fi_errno.h>

#include <algorithm>

#include "base/path_mtu.h"
#include "offer.h"
#include "os/name_lookup.h"

namespace weft::fabric {
namespace {

using os::SocketAddress;
using Addresses = std::vector<SocketAddress>;

// FI_SOCKADDR_IP of libfabric 2.3 and later; the headers of 1.17 do not have it.
constexpr std::uint32_t kFormatIp = 17;

Error nothing(std::string message) { return {FI_ENODATA, std::move(message)}; }

bool has(const AddressQuery& query, std::uint64_t flag) { return (query.flags & flag) != 0; }

bool names_given(const AddressQuery& query) {
  return query.node != nullptr || query.service != nullptr;
}

// An address in hints that is not of IP belongs to another provider.
Result<Addresses> hinted(const void* bytes, std::size_t length, int family) {
  if (bytes == nullptr) return Addresses{};
  const Result<SocketAddress> address = SocketAddress::parse(bytes, length);
  if (!address) return nothing("address in hints: " + address.error().message);
  if (family != AF_UNSPEC && address.value().family() != family) {
    return nothing("address in hints: not of the hinted addr_format");
  }
  return Addresses{address.value()};
}

Result<Addresses> named(const AddressQuery& query, int family) {
  os::NameQuery names{query.node, query.service, has(query, FI_SOURCE), has(query, FI_NUMERICHOST),
                      family};
  Result<Addresses> found = os::look_up(names);
  if (!found) return nothing(found.error().message);
  return found;
}

Result<Addresses> wanted_sources(const AddressQuery& query, int family) {
  if (has(query, FI_SOURCE)) return named(query, family);
  if (query.hints == nullptr) return Addresses{};
  return hinted(query.hints->src_addr, query.hints->src_addrlen, family);
}

Result<Addresses> wanted_destinations(const AddressQuery& query, int family) {
  if (!has(query, FI_SOURCE) && names_given(query)) return named(query, family);
  if (query.hints == nullptr) return Addresses{};
  return hinted(query.hints->dest_addr, query.hints->dest_addrlen, family);
}

AddressPair pair_on(const device::OfferedDevice& device, const os::InterfaceAddress& entry,
                    const SocketAddress& source) {
  return {device.name, os::subnet_text(entry), source, std::nullopt,
          path_mtu(device.interface.mtu)};
}

std::optional<AddressPair> pair_for(const std::vector<device::OfferedDevice>& devices,
                                    const SocketAddress& source) {
  for (const device::OfferedDevice& device : devices) {
    const os::InterfaceAddress* entry = os::entry_of(device.interface, source);
    if (entry != nullptr) return pair_on(device, *entry, source);
  }
  return std::nullopt;
}

// The first address of each family of a device; the others can be asked for by name.
Addresses main_addresses(const device::OfferedDevice& device, int family) {
  Addresses result;
  for (const os::InterfaceAddress& entry : device.interface.addresses) {
    const int own = entry.address.family();
    if (family != AF_UNSPEC && own != family) continue;
    if (result.empty() || result.back().family() != own) result.push_back(entry.address);
  }
  return result;
}

std::vector<AddressPair> on_every_device(const std::vector<device::OfferedDevice>& devices,
                                         int family, std::uint16_t port) {
  std::vector<AddressPair> pairs;
  for (const device::OfferedDevice& device : devices) {
    for (SocketAddress source : main_addresses(device, family)) {
      source.set_port(port);
      pairs.push_back(pair_on(device, *os::entry_of(device.interface, source), source));
    }
  }
  return pairs;
}

// Pairs for sources alone. 0.0.0.0 and :: stand for the addresses of every device.
std::vector<AddressPair> from_sources(const Addresses& sources,
                                      const std::vector<device::OfferedDevice>& devices,
                                      int family) {
  if (sources.empty()) return on_every_device(devices, family, 0);
  std::vector<AddressPair> pairs;
  for (const SocketAddress& source : sources) {
    if (source.is_any()) {
      for (AddressPair& pair : on_every_device(devices, source.family(), source.port())) {
        pairs.push_back(std::move(pair));
      }
    } else if (std::optional<AddressPair> pair = pair_for(devices, source)) {
      pairs.push_back(std::move(*pair));
    }
  }
  return pairs;
}

// The address to reach `destination` from: the wanted one, with the kernel's choice for 0.0.0.0.
std::optional<SocketAddress> source_for(const SocketAddress& destination, const Addresses& wanted) {
  const auto match = std::ranges::find(wanted, destination.family(), &SocketAddress::family);
  if (match == wanted.end() && !wanted.empty()) return std::nullopt;
  if (match != wanted.end() && !match->is_any()) return *match;
  Result<SocketAddress> source = os::source_towards(destination);
  if (!source) return std::nullopt;
  if (match != wanted.end()) source.value().set_port(match->port());
  return source.value();
}

std::vector<AddressPair> towards(const Addresses& destinations, const Addresses& sources,
                                 const std::vector<device::OfferedDevice>& devices) {
  std::vector<AddressPair> pairs;
  for (const SocketAddress& destination : destinations) {
    if (destination.is_any()) continue;
    const std::optional<SocketAddress> source = source_for(destination, sources);
    if (!source) continue;
    std::optional<AddressPair> pair = pair_for(devices, *source);
    if (!pair) continue;
    pair->destination = destination;
    pairs.push_back(std::move(*pair));
  }
  return pairs;
}

}  // namespace

Result<int> family_of(std::uint32_t address_format) {
  switch (address_format) {
    case FI_FORMAT_UNSPEC:
    case FI_SOCKADDR:
    case kFormatIp:
      return AF_UNSPEC;
    case FI_SOCKADDR_IN:
      return AF_INET;
    case FI_SOCKADDR_IN6:
      return AF_INET6;
    default:
      return nothing("addr_format " + std::to_string(address_format) + ": only IP is offered");
  }
}

Result<std::vector<AddressPair>> pair_addresses(const AddressQuery& query,
                                                const std::vector<device::OfferedDevice>& devices) {
  if (has(query, FI_SOURCE) && !names_given(query)) {
    return Error{EINVAL, "FI_SOURCE without node and service"};
  }
  const std::uint32_t any_format = FI_FORMAT_UNSPEC;
  const Result<int> family =
      family_of(query.hints != nullptr ? query.hints->addr_format : any_format);
  if (!family) return family.error();
  const Result<Addresses> sources = wanted_sources(query, family.value());
  if (!sources) return sources.error();
  const Result<Addresses> destinations = wanted_destinations(query, family.value());
  if (!destinations) return destinations.error();
  std::vector<AddressPair> pairs = destinations.value().empty()
                                       ? from_sources(sources.value(), devices, family.value())
                                       : towards(destinations.value(), sources.value(), devices);
  if (pairs.empty()) return nothing("no local interface fits the given addresses");
  return pairs;
}

}  // namespace weft::fabric
