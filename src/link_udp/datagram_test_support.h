// SPDX-License-Identifier: BSD-2-Clause
// What do the tests of endpoints for datagrams share? Endpoints that write down what they hear.
#pragma once

#include <vector>

#include "base/stats.h"
#include "link_udp/ud_endpoint.h"
#include "os/loopback_support.h"
#include "test_support.h"

namespace weft::udp::testing {

// An endpoint on this host, by default of the loopback.
struct DatagramPeer {
  os::SocketAddress address;
  InboxLog log;
  FlowLog ends;
  os::WakeSet wake = std::move(os::WakeSet::create()).value();
  Stats stats;
  std::unique_ptr<roce::PacketPort> port;
  std::unique_ptr<UdEndpoint> endpoint;

  explicit DatagramPeer(const UdOptions& options = {},
                        const os::SocketAddress& at = os::loopback(0),
                        const roce::PacketPortOptions& of_port = {})
      : DatagramPeer(std::move(os::UdpSocket::bind(at, {})).value(), options, of_port) {}
  explicit DatagramPeer(os::UdpSocket socket, const UdOptions& options = {},
                        const roce::PacketPortOptions& of_port = {}) {
    address = socket.address();
    roce::PacketPortOptions with = of_port;
    with.stats = &stats;
    port = std::move(roce::PacketPort::open(std::move(socket), wake, with)).value();
    endpoint = std::make_unique<UdEndpoint>(*port, options);
  }
  std::unique_ptr<link::Flow> to(const os::SocketAddress& peer) {
    auto flow = endpoint->connect(peer);
    return flow ? std::move(flow).value() : nullptr;
  }
  // Packets that came and were not handed over. CNPs of no known flow are no messages.
  std::uint64_t lost() const {
    port->count_overflows();
    return stats.dropped() - stats.of(Stat::kUnknownFlow) + stats.of(Stat::kSocketOverflows);
  }
  // Polls until nothing more comes, but 20 seconds for so many messages in all, lost ones included.
  // Tells how many have come that were not lost.
  std::size_t heard(std::size_t expected = 0) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (endpoint->poll(log) != 0 ||
           (log.messages.size() + lost() < expected && std::chrono::steady_clock::now() < end)) {
      continue;
    }
    return log.messages.size();
  }
};

// Sends bytes in two SGEs, which change right after.
inline link::Outcome send(link::Flow& flow, Bytes bytes, bool may_linger = false) {
  const std::size_t half = bytes.size() / 2;
  const LocalRange sges[] = {{bytes.data(), half}, {bytes.data() + half, bytes.size() - half}};
  link::SendRequest request;
  request.operation = link::MessageOperation::kDatagram;
  request.has_data = bytes.size() % 2 != 0;
  request.data = 0xF000'0000 + bytes.size();
  request.must_copy = true;
  request.may_linger = may_linger;
  request.sges = sges;
  request.length = bytes.size();
  return flow.send(request);
}

inline bool is_done(const link::Outcome& outcome) {
  return outcome.state == link::Outcome::State::kDone;
}

}  // namespace weft::udp::testing
