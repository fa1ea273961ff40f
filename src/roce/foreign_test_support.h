// SPDX-License-Identifier: BSD-2-Clause
// How do tests play a foreign peer, and a process that forges one?
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "bytes_test_support.h"
#include "os/udp_socket.h"
#include "roce/relay_header.h"
#include "roce/route.h"
#include "wire/cm_message.h"
#include "wire/packet.h"

namespace weft::roce::testing {

using Change = std::function<void(wire::Packet&)>;

// Makes packets by hand.
struct ForeignHand {
  static constexpr std::uint32_t kQueuePair = 0x11;
  static constexpr std::uint32_t kQueueKey = 0x0123'4567;  // that of datagram endpoints
  // What the kernel of a foreign peer might have chosen; a receiver knows it from the ICRC only.
  static constexpr wire::Ipv4Words kWords{0x4711, 0x4000};

  os::SocketAddress from;

  // A UD SEND for the endpoint of that port, which came from here to port 4791 of that address.
  Bytes packet(const os::SocketAddress& host, std::uint16_t port, const Bytes& payload,
               const Change& change = {}) const {
    wire::Packet headers;
    headers.opcode =
        wire::opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnlyImmediate);
    headers.destination = queue_pair_at(port);
    headers.queue_key = kQueueKey;
    headers.source = kQueuePair;
    headers.immediate = 0xABCD'EF01;
    if (change) change(headers);
    const std::size_t size = wire::header_bytes(headers);
    Bytes bytes(size + payload.size() + wire::padding_of(payload.size()) + wire::kIcrcBytes);
    wire::write_headers(headers, payload.size(), bytes.data());
    std::copy(payload.begin(), payload.end(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    const std::size_t covered = bytes.size() - wire::kIcrcBytes;
    const wire::Route route = route_between(from, at_relay(host));
    const wire::Ipv4Words words = route.v6 ? wire::Ipv4Words{} : kWords;
    wire::store_icrc(bytes.data() + covered,
                     wire::icrc(route, std::span(bytes).first(covered), words));
    return bytes;
  }
  // A message for queue pair 1 of a connection manager, which came from here as above.
  Bytes mad(const os::SocketAddress& host, const wire::CmMad& mad,
            const Change& change = {}) const {
    const auto bytes = wire::write_cm(mad);
    return packet(host, 0, Bytes(bytes.begin(), bytes.end()), [&](wire::Packet& headers) {
      headers.opcode =
          wire::opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
      headers.destination = headers.source = wire::kCmQpn;
      headers.queue_key = wire::kCmQueueKey;
      if (change) change(headers);
    });
  }
  // A packet behind a relay header, as the owner of port 4791 of that address makes it.
  Bytes relay_header(const os::SocketAddress& host, std::uint16_t port, const Bytes& bytes,
                     std::uint8_t traffic_class = 0) const {
    Bytes made(kMaxRelayDatagram);
    const os::SocketAddress to = at_relay(host);
    made.resize(write_relayed({from, to, traffic_class, 0, bytes}, queue_pair_at(port), made));
    return made;
  }
  static os::SocketAddress at_relay(os::SocketAddress host) {
    host.set_port(wire::kUdpPort);
    return host;
  }
};

// The same, with a plain socket to send them from.
struct ForeignPeer : ForeignHand {
  explicit ForeignPeer(const os::SocketAddress& at)
      : socket(std::move(os::UdpSocket::bind(at, {.trains = false})).value()) {
    from = socket.address();
  }
  os::UdpSocket socket;

  void send(const os::SocketAddress& to, const Bytes& bytes) {
    EXPECT_EQ(socket.send(to, {}, bytes, bytes.size()).error, 0) << to.text();
  }
  // To port 4791 of the endpoint's host.
  void send_cm(const os::SocketAddress& endpoint, const Bytes& payload, const Change& change = {}) {
    send(at_relay(endpoint), packet(endpoint, endpoint.port(), payload, change));
  }
};

}  // namespace weft::roce::testing
