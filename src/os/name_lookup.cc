// SPDX-License-Identifier: BSD-2-Clause
// Which addresses do a host name and a service name stand for?
#include "os/name_lookup.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>

#include "os/cancellation.h"

namespace weft::os {
namespace {

constexpr unsigned kLargestPort = 65535;

// getaddrinfo(3) of glibc cuts a larger number to 16 bits without a word.
bool port_in_range(const char* service) {
  if (service == nullptr) return true;
  const char* end = service + std::strlen(service);
  unsigned long port = 0;
  const auto [stop, error] = std::from_chars(service, end, port);
  if (error == std::errc::result_out_of_range) return false;
  const bool number = error == std::errc() && stop == end;
  return !number || port <= kLargestPort;
}

addrinfo hints_for(const NameQuery& query) {
  addrinfo hints{};
  hints.ai_family = query.family;
  hints.ai_socktype = SOCK_DGRAM;
  if (query.passive) hints.ai_flags |= AI_PASSIVE;
  if (query.numeric) hints.ai_flags |= AI_NUMERICHOST;
  return hints;
}

int error_code(int status) {
  switch (status) {
    case EAI_MEMORY:
      return ENOMEM;
    case EAI_AGAIN:
      return EAGAIN;
    case EAI_SYSTEM:
      return errno;
    case EAI_NONAME:
    case EAI_NODATA:
    case EAI_ADDRFAMILY:
    case EAI_SERVICE:
      return ENODATA;
    default:
      return EINVAL;
  }
}

std::string described(const NameQuery& query) {
  const std::string_view node = query.node != nullptr ? query.node : "(none)";
  const std::string_view service = query.service != nullptr ? query.service : "(none)";
  return "node " + std::string(node) + ", service " + std::string(service);
}

std::vector<SocketAddress> collect(const addrinfo* first) {
  std::vector<SocketAddress> found;
  for (const addrinfo* entry = first; entry != nullptr; entry = entry->ai_next) {
    const Result<SocketAddress> address = SocketAddress::parse(entry->ai_addr, entry->ai_addrlen);
    if (!address || std::ranges::find(found, address.value()) != found.end()) continue;
    found.push_back(address.value());
  }
  std::ranges::stable_sort(found, {},
                           [](const SocketAddress& a) { return a.family() == AF_INET6; });
  return found;
}

}  // namespace

Result<std::vector<SocketAddress>> look_up(const NameQuery& query) {
  if (query.node == nullptr && query.service == nullptr) return Error{EINVAL, "no name to look up"};
  if (!port_in_range(query.service)) {
    return Error{EINVAL, described(query) + ": the largest port is 65535"};
  }
  const addrinfo hints = hints_for(query);
  addrinfo* first = nullptr;
  const CancellationOff off;
  const int status = ::getaddrinfo(query.node, query.service, &hints, &first);
  if (status != 0) return Error{error_code(status), described(query) + ": " + gai_strerror(status)};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> release(first, &::freeaddrinfo);
  return collect(first);
}

}  // namespace weft::os
