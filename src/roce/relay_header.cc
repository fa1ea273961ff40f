// SPDX-License-Identifier: BSD-2-Clause
// How is a packet of a foreign peer handed on to the endpoint whose queue pair it names?
#include "roce/relay_header.h"

#include <cstring>

#include "os/udp_socket.h"
#include "roce/route.h"
#include "wire/endian.h"
#include "wire/icrc.h"

namespace weft::roce {
namespace {

constexpr std::uint8_t kRelayVersion = 1;
constexpr std::size_t kVersionAt = wire::kBthBytes;
constexpr std::size_t kClassAt = kVersionAt + 1;
constexpr std::size_t kPortAt = kClassAt + 1;
constexpr std::size_t kSourceAt = kPortAt + 2;
static_assert(kSourceAt + 16 == kRelayHeaderBytes);
static_assert(kMaxRelayDatagram == kRelayHeaderBytes + wire::kMaxPacketBytes + wire::kIcrcBytes &&
              kMaxRelayDatagram <= os::UdpSocket::kMaxDatagram);

os::SocketAddress with_port(os::SocketAddress address, std::uint16_t port) {
  address.set_port(port);
  return address;
}

}  // namespace

std::string name_of_endpoint(const os::SocketAddress& address) {
  return "weft/datagrams/" + address.text();
}

std::string name_of_manager(const os::SocketAddress& address) {
  return "weft/managers/" + address.text();
}

os::SocketAddress addressee(const os::Datagram& packet, std::uint32_t queue_pair) {
  return with_port(packet.to, port_of(queue_pair));
}

std::size_t write_relayed(const os::Datagram& packet, std::uint32_t queue_pair,
                          std::span<std::byte> room) {
  const std::size_t length = kRelayHeaderBytes + packet.bytes.size();
  if (room.size() < length + wire::kIcrcBytes) return 0;
  std::byte* const out = room.data();
  wire::Packet headers;
  headers.opcode = kHandedOn;
  headers.destination = queue_pair;
  wire::write_headers(headers, 0, out);
  const wire::Route route = route_between(packet.from, packet.to);
  wire::store<std::uint8_t>(out + kVersionAt, kRelayVersion);
  wire::store<std::uint8_t>(out + kClassAt, packet.traffic_class);
  wire::store<std::uint16_t>(out + kPortAt, route.source_port);
  std::memcpy(out + kSourceAt, route.source.data(), route.source.size());
  std::memcpy(out + kRelayHeaderBytes, packet.bytes.data(), packet.bytes.size());
  const auto path = route_between(packet.to, addressee(packet, queue_pair));
  wire::store_icrc(out + length, wire::icrc(path, {out, length}));
  return length + wire::kIcrcBytes;
}

std::optional<RelayedPacket> read_relayed(const os::Datagram& datagram, Stats& stats) {
  RelayedPacket handed;
  handed.to = with_port(datagram.to, wire::kUdpPort);
  if (!(datagram.from == handed.to)) {
    stats.add(Stat::kForgedRelayHeaders);
    return std::nullopt;
  }
  const std::span<const std::byte> bytes = datagram.bytes;
  const auto words = wire::check_icrc(route_between(datagram.from, datagram.to), bytes);
  if (!words || *words != wire::Ipv4Words{}) {
    stats.add(Stat::kIcrcErrors);
  } else if (bytes.size() <= kRelayHeaderBytes + wire::kIcrcBytes ||
             wire::load<std::uint8_t>(bytes.data() + kVersionAt) != kRelayVersion ||
             is_relayed(bytes.subspan(kRelayHeaderBytes))) {
    stats.add(Stat::kMalformedPackets);
  } else {
    handed.from = os::SocketAddress::of_host(datagram.to.family(), bytes.data() + kSourceAt,
                                             wire::load<std::uint16_t>(bytes.data() + kPortAt));
    handed.traffic_class = wire::load<std::uint8_t>(bytes.data() + kClassAt);
    handed.bytes = bytes.subspan(kRelayHeaderBytes);
    handed.bytes = handed.bytes.first(handed.bytes.size() - wire::kIcrcBytes);
    return handed;
  }
  return std::nullopt;
}

}  // namespace weft::roce
