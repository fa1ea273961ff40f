// SPDX-License-Identifier: BSD-2-Clause
// Between which two endpoints do packets go, and in which file are they written down?
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "link/service.h"
#include "os/socket_address.h"
#include "wire/packet.h"
#include "wire/tap.h"

namespace weft::capture {

// An endpoint as packets name it.
struct End {
  os::SocketAddress address;
  std::uint32_t queue_pair = 0;
  std::uint32_t queue_key = 0;
  std::uint64_t station = 0;
  Psn datagram;  // number of the next one that it sends
};

// Two endpoints, seen from the one in this process.
struct Ends {
  wire::Tap& tap;
  End mine;
  End peers;
  std::size_t path_mtu = 0;
  link::Service service = link::Service::kReliableDatagram;
};

// Writes a packet down that this process sent, or received. `bytes` hold `length` ones from the
// base header to the padding, and have room for the ICRC.
void record(const Ends& ends, bool sent, std::span<std::byte> bytes, std::size_t length);

// Writes a packet down that is an unreliable datagram, with those headers and that payload, if one
// packet can hold it. It gets the next number.
void record_datagram(Ends& ends, bool sent, wire::Packet packet,
                     std::span<const std::byte> payload);

}  // namespace weft::capture
