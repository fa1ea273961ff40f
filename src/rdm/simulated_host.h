// SPDX-License-Identifier: BSD-2-Clause
// The network of transport's simulator between ports, and hosts that speak over it, on a clock of
// its own. Everything follows from a seed.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "os/loopback_support.h"
#include "rdm/engine.h"
#include "roce/congestion_notifier.h"
#include "roce/packet_check.h"
#include "roce/route.h"
#include "simulator_network.h"
#include "wire/cm_message.h"
#include "wire/icrc.h"

namespace weft::rdm::testing {

using transport::testing::Bytes;
using transport::testing::happens;
using transport::testing::Random;
using transport::testing::up_to;
using transport::testing::Weather;

// Between which ports a packet goes, and whether it met a queue. A port is a host's address.
struct Envelope {
  roce::Path path;
  bool marked = false;
};

class Network : public transport::testing::SimulatedNetwork<Envelope> {
 public:
  Network(const Weather& weather, double marked, std::uint64_t seed)
      : SimulatedNetwork(weather, seed), marks(marked) {}

  void send(const roce::Path& path, const Bytes& bytes) {
    ++packets_;
    if (loses && loses(path, bytes)) return;
    carry({path}, bytes, [this](Parcel& parcel) {
      parcel.marked = happens(random(), marks);
      return true;
    });
  }
  std::uint64_t packets() const { return packets_; }

  double marks;  // probability that a packet meets a queue that marks it
  std::function<bool(const roce::Path&, const Bytes&)> loses;  // packets that never arrive

 private:
  std::uint64_t packets_ = 0;
};

// A port with one engine.
class SimulatedHost final : public Host, roce::PacketOutput {
 public:
  // The only port of the host of that number.
  SimulatedHost(Network& network, std::uint8_t number, std::size_t mtu, double full)
      : SimulatedHost(network, number, static_cast<std::uint16_t>(40'000 + number), mtu, full) {}
  // One of its ports.
  SimulatedHost(Network& network, std::uint8_t number, std::uint16_t port, std::size_t mtu,
                double full)
      : address(os::address_of("10.0.0." + std::to_string(number + 1), port)),
        network_(network),
        mtu_(mtu),
        full_(full) {}

  // The engine, which ends before the host.
  std::unique_ptr<RdmEngine> make_engine(const RdmOptions& options) {
    connections.emplace(
        address.port(), options.device->peer_timeout, [this] { return random(); }, stats);
    auto engine = std::make_unique<RdmEngine>(
        *this, *connections, options,
        RdmEngine::LocalEnd{roce::queue_pair_at(address.port()), 400'000}, stats);
    engine_ = engine.get();
    return engine;
  }
  void arrive(Network::Parcel parcel) { inbox_.push_back(std::move(parcel)); }
  // receive() has something to hand over.
  bool has_news() const { return !inbox_.empty() || !errors_.empty() || !narrowed_.empty(); }
  void report(const os::UdpError& error) { errors_.push_back(error); }
  // The system hears that paths carry less.
  void narrow(std::size_t mtu, std::vector<os::SocketAddress> peers) {
    mtu_ = mtu;
    narrowed_ = std::move(peers);
  }

  roce::PacketOutput& output() override { return *this; }
  std::span<std::byte> place() override {
    if (happens(network_.random(), full_)) return {};
    return place_;
  }
  void add(const roce::Path& path, std::size_t length) override {
    Bytes bytes(place_.begin(), place_.begin() + static_cast<std::ptrdiff_t>(length));
    const std::uint32_t crc = wire::icrc(path.route, bytes);
    bytes.resize(length + wire::kIcrcBytes);
    wire::store_icrc(bytes.data() + length, crc);
    ++sent;
    network_.send(path, bytes);
  }
  void expect(std::size_t) override {}
  void flush() override {}
  bool pending() const override { return false; }
  void send_cnp(const roce::Path& path, std::uint32_t sender, std::uint32_t flow_identity,
                os::Time at) override {
    std::array<std::byte, roce::CongestionNotifier::kBytes> write_imm_info;
    if (notifier_.notify(path.route, sender, flow_identity, at, write_imm_info) == 0) return;
    std::ranges::copy(write_imm_info, place_.begin());
    add(path, write_imm_info.size());
  }
  Received receive() override {
    Received received;
    for (const os::SocketAddress& peer : std::exchange(narrowed_, {})) engine_->path_changed(peer);
    for (; !inbox_.empty(); inbox_.pop_front(), ++received.packets) take(inbox_.front());
    received.emptied = true;
    for (const os::UdpError& error : std::exchange(errors_, {})) engine_->unreachable(error);
    return received;
  }
  Result<os::UdpPath> path_to(const os::SocketAddress&) override {
    return os::UdpPath{address, mtu_};
  }
  void wake() override {}
  os::Time now() override { return network_.now; }
  std::uint64_t random() override { return network_.random()(); }

  const os::SocketAddress address;
  Stats stats;
  std::optional<PortConnections> connections;
  std::uint64_t sent = 0;  // packets

 private:
  // As a port does.
  void take(const Network::Parcel& parcel) {
    wire::Packet packet;
    const os::Datagram datagram{parcel.path.from, parcel.path.to, 0, 0, parcel.bytes};
    if (!check_.read(datagram, packet, stats)) return;
    const roce::PacketArrival arrival{packet, parcel.path.from, parcel.path.to, 0, parcel.marked};
    const bool cnp = packet.opcode == wire::kCongestionNotification;
    if (packet.destination != wire::kCmQpn &&
        packet.destination != roce::queue_pair_at(address.port())) {
      stats.add(cnp ? Stat::kUnknownFlow : Stat::kUnknownQp);
    } else if (cnp) {
      engine_->take_cnp(arrival);
    } else {
      engine_->take(arrival);
    }
  }

  Network& network_;
  std::size_t mtu_;
  const double full_;  // probability that the socket has no room
  RdmEngine* engine_ = nullptr;
  std::array<std::byte, 16'384> place_;
  std::deque<Network::Parcel> inbox_;
  std::vector<os::UdpError> errors_;
  std::vector<os::SocketAddress> narrowed_;
  roce::PacketCheck check_{nullptr};
  roce::CongestionNotifier notifier_;
};

}  // namespace weft::rdm::testing
