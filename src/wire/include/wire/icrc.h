// SPDX-License-Identifier: BSD-2-Clause
// Has a packet been changed on its way? The invariant CRC (IBTA 7.8.1, annex A17)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace weft::wire {

// The parts of the IP and UDP headers that the CRC covers and that are the same for all packets
// between two sockets. Ports in host order.
struct Route {
  bool v6 = false;
  std::array<std::byte, 16> source{};  // of IPv4: the first four
  std::array<std::byte, 16> destination{};
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;

  friend bool operator==(const Route& a, const Route& b) {
    return a.v6 == b.v6 && a.source_port == b.source_port &&
           a.destination_port == b.destination_port &&
           std::memcmp(a.source.data(), b.source.data(), a.source.size()) == 0 &&
           std::memcmp(a.destination.data(), b.destination.data(), a.destination.size()) == 0;
  }
};

// The IPv4 identification and fragment words. A plain UDP socket sends 0 and "don't fragment" when
// it asks for path MTU discovery, k in the k-th segment of a train, and sees neither on receive.
struct Ipv4Words {
  std::uint16_t identification = 0;
  std::uint16_t fragment = 0x4000;
  friend bool operator==(const Ipv4Words&, const Ipv4Words&) = default;
};

// The CRC of a packet: of `covered` (base header to padding) as it goes over `route`. IPv6 has no
// such words. Costs one pass over the bytes.
std::uint32_t icrc(const Route& route, std::span<const std::byte> covered, Ipv4Words words = {});
// The same of headers and payload that lie apart, and whose padding is implied.
std::uint32_t icrc(const Route& route, std::span<const std::byte> headers,
                   std::span<const std::byte> payload, Ipv4Words words = {});

// The same for packets that go over one route one after the other, most of which have the same
// length as the one before: what precedes the base header is summed up once for them.
class RouteCrc {
 public:
  explicit RouteCrc(const Route& route = {}) : route_(route) {}

  const Route& route() const { return route_; }
  // icrc(route(), covered, words).
  std::uint32_t of(std::span<const std::byte> covered, Ipv4Words words = {});

 private:
  Route route_;
  std::size_t length_ = 0;   // of what was covered by the last one; 0: none
  std::uint32_t start_ = 0;  // of what precedes that, with the usual words
};

// Writes and reads the CRC as it stands at the end of a packet.
void store_icrc(std::byte* at, std::uint32_t crc);
std::uint32_t load_icrc(const std::byte* at);

// Checks a datagram (base header to ICRC) that came over `route`. For IPv4 the CRC tells which
// words its sender used, given that nothing else was changed: those are returned, and it is for the
// caller to doubt an identification that this peer would not use. For IPv6 the words are the
// default. Nothing when the datagram was changed, or is too short to have a CRC.
std::optional<Ipv4Words> check_icrc(const Route& route, std::span<const std::byte> datagram,
                                    Ipv4Words expected = {});
std::optional<Ipv4Words> check_icrc(RouteCrc& route, std::span<const std::byte> datagram,
                                    Ipv4Words expected = {});

}  // namespace weft::wire
