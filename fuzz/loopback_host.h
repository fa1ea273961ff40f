// SPDX-License-Identifier: BSD-2-Clause
// From where does a fuzzer send datagrams of all lengths to real sockets, and to which address?
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "input.h"
#include "os/loopback_support.h"
#include "os/udp_socket.h"
#include "roce/route.h"
#include "wire/icrc.h"
#include "wire/packet.h"

namespace weft::fuzz {

// An address of the loopback interface that other processes hardly use: all of 127/8 is there, so
// that port 4791 is free.
inline os::SocketAddress host_of_fuzzer() {
  const auto number = static_cast<unsigned>(::getpid());
  return os::address_of("127." + std::to_string(64 + number % 128) + "." +
                        std::to_string(number / 128 % 256) + "." +
                        std::to_string(1 + number / 32'768 % 254));
}

// A peer's socket. One datagram at a time.
class Sender {
 public:
  explicit Sender(const os::SocketAddress& host)
      : socket_(std::move(os::UdpSocket::bind(host, {.trains = false})).value()) {}

  const os::SocketAddress& address() const { return socket_.address(); }
  // What was written last, with room for the longest datagram.
  std::span<std::byte> bytes() { return bytes_; }

  // Headers, then so many bytes of payload as they lie there, then the padding. Returns the length,
  // ICRC included.
  std::size_t write(const wire::Packet& headers, std::size_t payload) {
    const std::size_t before = wire::header_bytes(headers);
    const std::size_t room = bytes_.size() - before - wire::kIcrcBytes - 3;
    payload = std::min(payload, room);
    wire::write_headers(headers, payload, bytes_.data());
    const std::size_t padding = wire::padding_of(payload);
    std::fill_n(bytes_.begin() + static_cast<std::ptrdiff_t>(before + payload), padding,
                std::byte{});
    return before + payload + padding + wire::kIcrcBytes;
  }
  // Sends the first `length` of them, whose ICRC is made right if they have room for one.
  void send(const os::SocketAddress& to, std::size_t length, bool right = true) {
    if (right && length >= wire::kBthBytes + wire::kIcrcBytes) {
      const std::size_t covered = length - wire::kIcrcBytes;
      const auto crc = wire::icrc(roce::route_between(address(), to),
                                  std::span<const std::byte>(bytes_).first(covered));
      wire::store_icrc(bytes_.data() + covered, crc);
    }
    socket_.send(to, {}, std::span<const std::byte>(bytes_).first(length), length);
  }
  // Calls visit(const os::Datagram&) for what has come.
  template <class Visit>
  void hear(Visit visit) {
    while (socket_.receive(batch_) == 0 && !batch_.arrivals().empty()) batch_.for_each(visit);
    while (socket_.next_error()) continue;
  }

 private:
  os::UdpSocket socket_;
  os::UdpBatch batch_{8};
  std::vector<std::byte> bytes_ = std::vector<std::byte>(os::UdpSocket::kMaxDatagram);
};

// A length of the kind that breaks things, up to the longest datagram.
inline std::size_t draw_length(Input& input) {
  return std::min<std::uint64_t>(
      input.number({0, wire::kBthBytes + wire::kIcrcBytes, wire::kMaxPathMtu,
                    wire::kMaxReliableDatagramMtu, wire::kMaxPacketBytes, 0xFFFF,
                    os::UdpSocket::kMaxDatagram, 256}),
      os::UdpSocket::kMaxDatagram);
}

}  // namespace weft::fuzz
