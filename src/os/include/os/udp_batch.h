// SPDX-License-Identifier: BSD-2-Clause
// What did a UDP socket receive by one system call?
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "os/udp_port.h"

namespace weft::os {

// One datagram. What came from a peer is not to be believed: anybody may have sent it. The bytes
// are in the batch and end with its next filling.
struct Datagram {
  const SocketAddress& from;
  const SocketAddress& to;     // the address that the sender named, with this socket's port
  std::uint8_t traffic_class;  // of the IP header; bits 0 and 1: ECN (3: congestion was met)
  // Its place among those that the kernel handed over in one piece. When these left as one train
  // and nothing on the way cut or joined it, this is its place there; otherwise it is not.
  std::size_t index;
  std::span<const std::byte> bytes;
};

// One or more datagrams of one sender, one after the other in `bytes`: each of `segment` bytes, the
// last may be shorter. An empty datagram has no bytes, and segment 0.
struct ReceivedDatagrams {
  SocketAddress from;
  SocketAddress to;
  std::uint8_t traffic_class = 0;
  std::size_t segment = 0;
  std::span<const std::byte> bytes;

  // How many datagrams these are.
  std::size_t datagrams() const {
    return segment == 0 ? 1 : (bytes.size() + segment - 1) / segment;
  }
  // The one of that number, which must be below datagrams().
  Datagram datagram(std::size_t index) const {
    const std::size_t offset = index * segment;
    const std::size_t size = std::min(segment, bytes.size() - offset);
    return {from, to, traffic_class, index, bytes.subspan(offset, size)};
  }
};

// Buffers for what UdpSocket::receive() gets, made once; no memory is taken up by a buffer until
// something arrives in it. One thread at a time.
class UdpBatch {
 public:
  // With room for so many arrivals (at least 1) of the largest size.
  explicit UdpBatch(std::size_t arrivals);
  UdpBatch(UdpBatch&&) = default;
  UdpBatch& operator=(UdpBatch&&) = default;

  // Fills the batch with what has arrived at a socket of that address, as UdpSocket::receive()
  // says.
  int receive(int fd, const SocketAddress& bound);

  // Empties it.
  void clear();
  // What the last receive() got; empty when there was nothing to read.
  std::span<const ReceivedDatagrams> arrivals() const { return {arrivals_.data(), count_}; }

  // Calls visit(const Datagram&) for every datagram in the order of their arrival.
  template <class ExclusiveEntry>
  void for_each(ExclusiveEntry&& entry) const;

  // True when the last receive() met an error that had come back from the network: call
  // UdpSocket::next_error() until it has no more.
  bool errors_waiting() const { return errors_waiting_; }

  // Datagrams dropped so far because they did not fit a buffer.
  std::uint64_t truncated() const { return truncated_; }

 private:
  // What the kernel writes beside the bytes of one arrival.
  struct Slot {
    iovec sge;
    sockaddr_in6 sender;
    alignas(cmsghdr) std::array<std::byte, 128> control;
  };

  // Has the kernel fill messages; returns how many, or -1.
  int fill(int fd);
  // Turns the first `filled` messages into arrivals at a socket of that address.
  void take(std::size_t filled, const SocketAddress& bound);

  std::unique_ptr<std::byte[]> bytes_;
  std::vector<Slot> slots_;
  std::vector<mmsghdr> messages_;
  std::vector<ReceivedDatagrams> arrivals_;
  std::size_t filled_ = 0;  // messages that the last call wrote
  std::size_t count_ = 0;   // arrivals made of them
  unsigned in_a_row_ = 0;   // calls that got something
  std::uint64_t truncated_ = 0;
  bool errors_waiting_ = false;
};

template <class ExclusiveEntry>
void UdpBatch::for_each(ExclusiveEntry&& entry) const {
  for (const ReceivedDatagrams& arrival : arrivals()) {
    const std::size_t datagrams = arrival.datagrams();
    for (std::size_t i = 0; i < datagrams; ++i) entry(arrival.datagram(i));
  }
}

}  // namespace weft::os
