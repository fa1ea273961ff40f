// SPDX-License-Identifier: BSD-2-Clause
// Which bytes stand in front of a received datagram?
#include "grh.h"

#include <cstdint>
#include <cstring>

#include "wire/endian.h"

namespace weft::queue {
namespace {

constexpr std::size_t kUdpBytes = 8;
constexpr std::size_t kIpv4Bytes = 20;
constexpr std::uint8_t kUdpProtocol = 17;
constexpr std::uint8_t kHopLimit = 64;

// The checksum of RFC 791 over a header whose checksum field is 0.
std::uint16_t checksum(const std::byte* header) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < kIpv4Bytes; i += 2) sum += wire::load<std::uint16_t>(header + i);
  sum = (sum & 0xFFFF) + (sum >> 16);
  sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

}  // namespace

std::array<std::byte, kGrhBytes> make_grh(const os::SocketAddress& from,
                                          const os::SocketAddress& to, std::size_t payload) {
  std::array<std::byte, kGrhBytes> grh{};
  if (from.family() == AF_INET6) {
    grh[0] = std::byte{0x60};
    wire::store<std::uint16_t>(grh.data() + 4, static_cast<std::uint16_t>(kUdpBytes + payload));
    grh[6] = std::byte{kUdpProtocol};
    grh[7] = std::byte{kHopLimit};
    std::memcpy(grh.data() + 8, &reinterpret_cast<const sockaddr_in6*>(from.get())->sin6_addr, 16);
    std::memcpy(grh.data() + 24, &reinterpret_cast<const sockaddr_in6*>(to.get())->sin6_addr, 16);
    return grh;
  }
  std::byte* const header = grh.data() + kGrhBytes - kIpv4Bytes;
  header[0] = std::byte{0x45};
  const std::size_t length = kIpv4Bytes + kUdpBytes + payload;
  wire::store<std::uint16_t>(header + 2, static_cast<std::uint16_t>(length));
  header[6] = std::byte{0x40};  // don't fragment
  header[8] = std::byte{kHopLimit};
  header[9] = std::byte{kUdpProtocol};
  std::memcpy(header + 12, &reinterpret_cast<const sockaddr_in*>(from.get())->sin_addr, 4);
  std::memcpy(header + 16, &reinterpret_cast<const sockaddr_in*>(to.get())->sin_addr, 4);
  wire::store<std::uint16_t>(header + 10, checksum(header));
  return grh;
}

}  // namespace weft::queue
