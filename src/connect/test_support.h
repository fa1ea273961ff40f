// SPDX-License-Identifier: BSD-2-Clause
// How are listeners tested? With a requester that writes down what it hears.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"
#include "device/port.h"
#include "link/place.h"
#include "os/loopback_support.h"

namespace weft::connect::testing {

using os::loopback;
using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

inline Bytes bytes_of(const wire::CmMad& mad) {
  const auto bytes = wire::write_cm(mad);
  return {bytes.begin(), bytes.end()};
}

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A port within the host that asks for connections, or sends other messages to a listener. What it
// hears of its connection is a word of `log`.
struct Asker final : link::InboxSink, link::FlowSink, link::ConnectionUser {
  os::SocketAddress name;
  os::SocketAddress listener;
  std::unique_ptr<device::Port> port;
  link::ConnectionNumber number = 0;
  std::shared_ptr<link::Flow> path;
  std::vector<std::string> log;

  Asker(const std::shared_ptr<device::Device>& device, std::uint16_t number,
        os::SocketAddress listener)
      : name(loopback(number)), listener(std::move(listener)) {
    device::PortSetup setup;
    setup.name = name;
    setup.domain = device->new_domain();
    setup.connected = true;
    port = std::move(device::Port::open(device, name, setup)).value();
  }
  ~Asker() override { path.reset(); }

  void ask(const std::string& data = {}) {
    auto asked = port->connections().request(listener, bytes_of(data), *this);
    ASSERT_TRUE(asked.ok()) << asked.error().message;
    number = asked.value();
  }
  void accept(const link::ConnectionRequest& request) {
    auto accepted = port->connections().accept(request, {}, *this);
    ASSERT_TRUE(accepted.ok()) << accepted.error().message;
    number = accepted.value();
  }
  // By a source of its own.
  void say(const Bytes& bytes,
           link::MessageOperation operation = link::MessageOperation::kControl) {
    if (path == nullptr) path = std::move(port->connect(listener)).value();
    const LocalRange sge{const_cast<std::byte*>(bytes.data()), bytes.size()};
    link::SendRequest request;
    request.operation = operation;
    request.must_copy = true;
    request.sges = {&sge, 1};
    request.length = bytes.size();
    path->send(request);
  }
  bool is_refused() { return path->check_peer(*this) == link::PeerState::kRefuses; }
  // Takes in what has arrived.
  std::vector<std::string> hear() {
    port->inbox().poll(*this);
    port->inbox().check_sources(*this);
    port->check_connections(true, [this] { port->inbox().poll(*this); });
    return std::exchange(log, {});
  }

  void source_opened(std::uint32_t, const os::SocketAddress& address) override { from = address; }
  void source_closed(std::uint32_t source, bool) override { port->end_connection_of(source); }
  void received(void*, int) override {}
  void ended(void*, int, int) override {}
  void arrived(const link::Arrival& arrival) override { port->take_control(*this, arrival, from); }
  void connected(std::uint32_t, std::shared_ptr<link::Flow> flow,
                 std::span<const std::byte> data) override {
    path = std::move(flow);
    log.push_back("connected " + text_of(data));
  }
  void failed(int error, std::span<const std::byte> data) override {
    log.push_back((error == ECONNREFUSED ? "rejected " : "failed ") + text_of(data));
  }
  void ended() override { log.emplace_back("ended"); }

 private:
  os::SocketAddress from;  // of the last source
};

}  // namespace weft::connect::testing
