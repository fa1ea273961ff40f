// SPDX-License-Identifier: BSD-2-Clause
// What do the tests of ports share? An endpoint that writes down what it hears, and a device.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"
#include "device/port.h"
#include "link/place.h"
#include "os/loopback_support.h"
#include "os/udp_port.h"

namespace weft::device::port_testing {

inline constexpr Links kShm{true, false};
inline constexpr Links kUdp{false, true};
inline constexpr Links kBoth{true, true};
inline constexpr std::size_t kLarge = 300'000;  // is offered over either link

// An endpoint that writes down what arrives, by source.
struct End final : link::InboxSink, link::FlowSink {
  End(const std::shared_ptr<Device>& device, Links links,
      link::Service service = link::Service::kReliableDatagram,
      const os::SocketAddress& at = os::loopback(0))
      : device(device), service(service) {
    socket = std::move(os::UdpPort::bind(at)).value();
    if (links.shm || links.udp) open(links);
  }
  ~End() override { flows.clear(); }

  void open(Links links) {
    PortSetup options;
    options.name = socket.address();
    domain = device->new_domain();
    options.domain = domain;
    options.service = service;
    options.remote_peer_seen = [this] { ++met; };
    link::Place place(socket, links);
    place.traffic_class = traffic_class;
    port = std::move(Port::open(device, place, options)).value();
  }
  link::Flow& to(const End& peer) {
    auto& flow = flows[&peer];
    if (flow == nullptr) flow = std::move(port->connect(peer.socket.address())).value();
    return *flow;
  }
  link::Outcome send(const End& peer, const std::string& text) { return send(to(peer), text); }
  link::Outcome send(link::Flow& flow, const std::string& text) const {
    const LocalRange sge{reinterpret_cast<std::byte*>(const_cast<char*>(text.data())), text.size()};
    link::SendRequest request;
    request.sges = {&sge, 1};
    request.length = text.size();
    if (service == link::Service::kDatagram) {
      request.operation = link::MessageOperation::kDatagram;
      request.must_copy = true;
    }
    return flow.send(request);
  }
  void poll() {
    port->inbox().poll(*this);
    for (auto& [peer, flow] : flows) flow->progress(*this);
  }

  void source_opened(std::uint32_t source, const os::SocketAddress& address) override {
    sources[address.port()] = source;
  }
  void source_closed(std::uint32_t source, bool) override { closed.push_back(source); }
  void arrived(const link::Arrival& arrival) override {
    if (turns_away) return port->inbox().refuse(*this, arrival.source);
    if (arrival.payload != nullptr) {
      const auto* text = reinterpret_cast<const char*>(arrival.payload);
      heard[arrival.source].emplace_back(text, arrival.length);
      if (arrival.wants_ack) port->inbox().acknowledge(arrival.offer);
      return;
    }
    auto& pending = taken.emplace_back(arrival.source, std::string(arrival.length, '\0'));
    const LocalRange sge{reinterpret_cast<std::byte*>(pending.second.data()), arrival.length};
    port->inbox().accept(*this, arrival.offer, {&sge, 1}, arrival.length, &pending);
  }
  void received(void* cookie, int error) override {
    EXPECT_EQ(error, 0);
    const auto& done = *static_cast<std::pair<std::uint32_t, std::string>*>(cookie);
    heard[done.first].push_back(done.second);
  }
  void ended(void*, int error, int) override { errors.push_back(error); }

  std::shared_ptr<Device> device;
  const link::Service service;
  DomainId domain;
  os::UdpPort socket;
  std::uint8_t traffic_class = 0;
  std::unique_ptr<Port> port;
  std::map<const End*, std::unique_ptr<link::Flow>> flows;
  std::map<std::uint16_t, std::uint32_t> sources;
  std::map<std::uint32_t, std::vector<std::string>> heard;
  std::list<std::pair<std::uint32_t, std::string>> taken;
  std::vector<std::uint32_t> closed;
  std::vector<int> errors;
  bool turns_away = false;
  int met = 0;
};

inline bool poll_until(std::initializer_list<End*> ends, const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done()) {
    for (End* each : ends) each->poll();
    if (std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

class PortTest : public testing::Test {
 protected:
  PortTest() {
    EXPECT_NE(::mkdtemp(base_.data()), nullptr);
    device_ = Device::get(base_).value();
  }
  ~PortTest() override {
    device_.reset();
    std::filesystem::remove_all(base_);
  }

  static std::size_t messages_at(const End& receiver) {
    std::size_t count = 0;
    for (const auto& [source, texts] : receiver.heard) count += texts.size();
    return count;
  }
  const std::vector<std::string>& heard_from(End& receiver, const End& sender) {
    return receiver.heard[receiver.sources[sender.socket.address().port()]];
  }

  std::string base_ = "/dev/shm/weft-test-XXXXXX";
  std::shared_ptr<Device> device_;
};

}  // namespace weft::device::port_testing
