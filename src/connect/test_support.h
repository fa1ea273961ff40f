// SPDX-License-Identifier: BSD-2-Clause
// What do the tests of connections share? Addresses, and a border that writes down what it is
// asked.
#pragma once

#include <string>
#include <vector>

#include "connect/connection.h"
#include "os/loopback_support.h"

namespace weft::connect::testing {

using os::loopback;
using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Every call becomes a word of `log`.
struct Scribe final : Border {
  std::vector<std::string> log;
  std::vector<ConnectMessage> told;
  Token expected = 0;
  int reach_error = 0;
  int tell_error = 0;

  int reach(const os::SocketAddress& peer) override {
    log.push_back("reach " + std::to_string(peer.port()));
    return reach_error;
  }
  os::SocketAddress name() override { return loopback(1); }
  void expect(Token token) override { expected = token; }
  int send_control(const ConnectMessage& message) override {
    log.push_back("tell " + std::to_string(static_cast<int>(message.kind)));
    told.push_back(message);
    return tell_error;
  }
  void accept_source(std::uint32_t source) override {
    log.push_back("admit " + std::to_string(source));
  }
  void reject_source(std::uint32_t source) override {
    log.push_back("turn away " + std::to_string(source));
  }
  void connected(std::span<const std::byte> data) override {
    log.push_back("connected " + text_of(data));
  }
  void failed(int error, std::span<const std::byte> data) override {
    log.push_back("failed " + std::to_string(error) + " " + text_of(data));
  }
  void parted() override { log.push_back("parted"); }
};

}  // namespace weft::connect::testing
