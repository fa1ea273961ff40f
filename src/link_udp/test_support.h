// SPDX-License-Identifier: BSD-2-Clause
// Endpoints over sockets of this host that tests poll in turn. Most rules are judged in the
// simulator of the module rdm; here is what needs a kernel.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/stats.h"
#include "bytes_test_support.h"
#include "endpoint_log.h"
#include "link_udp/rd_endpoint.h"
#include "os/loopback_support.h"
#include "os/runtime_dir.h"
#include "os/udp_socket.h"
#include "regions_test_support.h"
#include "roce/path.h"

namespace weft::udp::testing {

using namespace rdm;

using rdm::testing::connect;
using rdm::testing::ConnectionEnd;
using rdm::testing::expect_message;
using rdm::testing::FlowLog;
using rdm::testing::kDomain;
using rdm::testing::Regions;
using rdm::testing::send;
using roce::testing::Bytes;
using roce::testing::pattern;

using InboxLog = rdm::testing::InboxLog<RdEndpoint>;

// Writes down which connections are requested.
struct Listening final : link::ListenerUser {
  std::vector<std::pair<link::ConnectionNumber, link::ConnectionRequest>> requests;
  void requested(link::ConnectionNumber number, link::ConnectionRequest request) override {
    requests.emplace_back(number, std::move(request));
  }
  void withdrawn(link::ConnectionNumber) override {}
};

// An endpoint on this host.
struct Peer {
  os::SocketAddress address;
  InboxLog log;
  FlowLog ends;
  os::WakeSet wake = std::move(os::WakeSet::create()).value();
  Stats stats;
  std::unique_ptr<roce::PacketPort> port;
  std::optional<PortConnections> connections;
  std::unique_ptr<RdEndpoint> endpoint;
  std::vector<std::unique_ptr<link::Flow>> flows;

  explicit Peer(const RdmOptions& wanted = {}, const os::SocketAddress& at = os::loopback(0),
                wire::Tap* capture = nullptr) {
    auto socket = os::UdpSocket::bind(at, roce::kReliableSocket);
    RdmOptions options = wanted;
    address = options.name = socket.value().address();
    options.domain = kDomain;
    port = std::move(roce::PacketPort::open(std::move(socket).value(), wake,
                                            {capture, nullptr, RdEndpoint::kArrivals, &stats}))
               .value();
    connections.emplace(address.port(), options.device->peer_timeout, os::random_number, stats);
    endpoint = std::make_unique<RdEndpoint>(*port, *connections, options);
    log.endpoint = endpoint.get();
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  Result<std::unique_ptr<link::Flow>> open(const os::SocketAddress& peer) {
    return endpoint->connect(peer);
  }
  // In good order, while another thread polls the peers.
  void leave(Peer* other = nullptr) {
    std::atomic<bool> left{false};
    std::thread thread;
    if (other != nullptr) {
      thread = std::thread([&] {
        while (!left) other->poll();
      });
    }
    flows.clear();
    close();
    left = true;
    if (thread.joinable()) thread.join();
  }
  void close() {
    endpoint.reset();
    port.reset();
  }
  // Packets.
  std::uint64_t sent() const { return port->trains().packets(); }
  void poll() {
    if (endpoint == nullptr) return;
    endpoint->poll(log);
    for (const auto& flow : flows) flow->progress(ends);
  }
};

// Polls them in turn until that holds; false when it does not within 20 seconds.
inline bool until(std::initializer_list<Peer*> peers, const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    for (Peer* peer : peers) peer->poll();
  }
  return true;
}

// Without polling, the end of one endpoint would wait for the other.
inline void part(Peer& one, Peer& other) {
  one.leave(&other);
  other.leave();
}

}  // namespace weft::udp::testing
