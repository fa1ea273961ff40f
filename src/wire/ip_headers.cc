// SPDX-License-Identifier: BSD-2-Clause
// What do the IP and UDP headers of a packet look like?
#include "ip_headers.h"

#include <cstring>

#include "wire/endian.h"

namespace weft::wire {
namespace {

constexpr std::uint8_t kUdpProtocol = 17;
constexpr std::uint8_t kHops = 64;

void write_ipv4(const Route& route, Ipv4Words words, std::size_t udp_length, std::byte* ip) {
  store<std::uint16_t>(ip, 0x4500);
  store<std::uint16_t>(ip + 2, static_cast<std::uint16_t>(kIpv4Bytes + udp_length));
  store<std::uint16_t>(ip + 4, words.identification);
  store<std::uint16_t>(ip + 6, words.fragment);
  store<std::uint8_t>(ip + 8, kHops);
  store<std::uint8_t>(ip + 9, kUdpProtocol);
  store<std::uint16_t>(ip + 10, 0);
  std::memcpy(ip + 12, route.source.data(), 4);
  std::memcpy(ip + 16, route.destination.data(), 4);
}

void write_ipv6(const Route& route, std::size_t udp_length, std::byte* ip) {
  store<std::uint32_t>(ip, 0x6000'0000);
  store<std::uint16_t>(ip + 4, static_cast<std::uint16_t>(udp_length));
  store<std::uint8_t>(ip + 6, kUdpProtocol);
  store<std::uint8_t>(ip + 7, kHops);
  std::memcpy(ip + 8, route.source.data(), 16);
  std::memcpy(ip + 24, route.destination.data(), 16);
}

// The sum of bytes as big-endian words of 16 bits; an odd last one counts as if a zero followed.
std::uint64_t sum_of(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0;
  std::size_t i = 0;
  for (; i + 1 < bytes.size(); i += 2) sum += load<std::uint16_t>(bytes.data() + i);
  if (i < bytes.size()) sum += std::uint64_t{load<std::uint8_t>(bytes.data() + i)} << 8;
  return sum;
}

// The ones' complement of the ones' complement sum.
std::uint16_t checksum(std::uint64_t sum) {
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

}  // namespace

void write_ip_and_udp(const Route& route, Ipv4Words words, std::size_t datagram, std::byte* out) {
  if (route.v6) {
    write_ipv6(route, kUdpBytes + datagram, out);
  } else {
    write_ipv4(route, words, kUdpBytes + datagram, out);
  }
  std::byte* udp = out + ip_bytes_of(route);
  store<std::uint16_t>(udp, route.source_port);
  store<std::uint16_t>(udp + 2, route.destination_port);
  store<std::uint16_t>(udp + 4, static_cast<std::uint16_t>(kUdpBytes + datagram));
  store<std::uint16_t>(udp + 6, 0);
}

// (RFC 791.)
void add_ipv4_checksum(std::byte* ip) {
  store<std::uint16_t>(ip + 10, 0);
  store<std::uint16_t>(ip + 10, checksum(sum_of({ip, kIpv4Bytes})));
}

// Addresses, protocol and length are summed up, too; zero would mean that there is no checksum.
void add_udp_checksum(const Route& route, std::byte* udp, std::span<const std::byte> datagram) {
  const std::size_t address = route.v6 ? 16 : 4;
  store<std::uint16_t>(udp + 6, 0);
  std::uint64_t sum = sum_of({udp, kUdpBytes}) + sum_of(datagram);
  sum += sum_of(std::span(route.source).first(address));
  sum += sum_of(std::span(route.destination).first(address));
  sum += kUdpProtocol + kUdpBytes + datagram.size();
  const std::uint16_t found = checksum(sum);
  store<std::uint16_t>(udp + 6, found != 0 ? found : std::uint16_t{0xFFFF});
}

}  // namespace weft::wire
