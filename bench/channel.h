// SPDX-License-Identifier: BSD-2-Clause
// How the two processes talk beside the fabric: addresses, phases, "ready" and "done".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft::bench {

// A connected stream socket, owned. One thread. Every error, a closed peer included, ends the
// process: a server that has died must not leave a client spinning.
class Channel {
 public:
  // The two ends of one connection, to be divided by a fork.
  static std::pair<Channel, Channel> make_pair();
  // Accepts one TCP connection on PORT of every local address.
  static Channel accept_one(std::uint16_t port);
  // Connects over TCP, trying again for five seconds so that either side may start first.
  static Channel connect_to(const std::string& host, std::uint16_t port);

  explicit Channel(int socket) : socket_(socket) {}
  Channel(Channel&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  Channel& operator=(Channel&&) = delete;
  ~Channel();

  void send_bytes(const void* bytes, std::size_t count);
  void receive_bytes(void* bytes, std::size_t count);
  // Whether receive_bytes() would find something now.
  bool has_input();
  // Sleeps until it would.
  void wait_for_input();

  template <class Value>
  void send(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    send_bytes(&value, sizeof value);
  }

  template <class Value>
  Value receive() {
    static_assert(std::is_trivially_copyable_v<Value>);
    Value value;
    receive_bytes(&value, sizeof value);
    return value;
  }

  void send_block(const std::vector<std::byte>& block);
  std::vector<std::byte> receive_block();

 private:
  bool peek(int flags);

  int socket_;
};

}  // namespace weft::bench
