// SPDX-License-Identifier: BSD-2-Clause
// How is a packet of a foreign peer handed on to the endpoint whose queue pair it names?
//
// As a packet of its own, from the owner of port 4791 of an address to the queue pair's port at the
// same address. All numbers are big-endian:
//
//    0  base header: opcode 0xF4, one of those left to manufacturers; the queue pair, for messages
//       of connection management manager_at(port); PSN 0
//   12  version: 1
//   13  traffic class, as it stood in the packet's IP header
//   14  the UDP port that the packet came from
//   16  the address that it came from; of IPv4 four bytes, then zeros
//   32  the packet, base header to ICRC
//       the ICRC of all this
//
// The packet had been sent to the address that the relay header goes to, and to port 4791. With
// that its own ICRC can be checked: it covers no more of the IP and UDP headers that a socket can
// see.
//
// A relay header can name any foreign peer as the source. It is accepted only from port 4791 of the
// address that it was sent to: the owner of that port receives the foreign peers' packets anyway.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/stats.h"
#include "os/udp_batch.h"
#include "wire/packet.h"

namespace weft::roce {

inline constexpr std::uint8_t kHandedOn = 0xF4;
inline constexpr std::size_t kRelayHeaderBytes = 32;
// A relay header with the longest packet that parse() takes.
inline constexpr std::size_t kMaxRelayDatagram =
    kRelayHeaderBytes + wire::kMaxPacketBytes + wire::kIcrcBytes;

// What came in a relay header. Its bytes lie in that.
struct RelayedPacket {
  os::SocketAddress from;
  os::SocketAddress to;
  std::uint8_t traffic_class = 0;
  std::span<const std::byte> bytes;

  // The packet as a socket at port 4791 would have received it.
  os::Datagram datagram() const { return {from, to, traffic_class, 0, bytes}; }
};

// True for what has the opcode of a relay header.
inline bool is_relayed(std::span<const std::byte> datagram) {
  return !datagram.empty() && datagram[0] == std::byte{kHandedOn};
}

// Puts a packet, which came to port 4791, into a relay header for that queue pair. Returns the
// length of the relay header; 0 when `room` is too short, and then nothing is written.
std::size_t write_relayed(const os::Datagram& packet, std::uint32_t queue_pair,
                          std::span<std::byte> room);

// Where a relay header for that queue pair goes.
os::SocketAddress addressee(const os::Datagram& packet, std::uint32_t queue_pair);

// The name (os::LocalName) by which the relay knows that a datagram endpoint is at that address.
std::string name_of_endpoint(const os::SocketAddress& address);
// The same of a manager of connections: a port whose queue pair 1 foreign peers reach.
std::string name_of_manager(const os::SocketAddress& address);

// What stands for queue pair 1 of a port where numbers of several ports meet: index 0.
constexpr std::uint32_t manager_at(std::uint16_t port) { return std::uint32_t{port} << 8; }

// Takes a packet out of its relay_header. Counts the relay header, and returns nothing, when it is
// not to be believed or makes no sense. Of the packet nothing is known then: it is to be checked as
// if it had come by itself.
std::optional<RelayedPacket> read_relayed(const os::Datagram& datagram, Stats& stats);

}  // namespace weft::roce
