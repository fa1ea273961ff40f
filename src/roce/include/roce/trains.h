// SPDX-License-Identifier: BSD-2-Clause
// How do packets leave, many at a time?
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "os/udp_socket.h"
#include "roce/path.h"
#include "wire/icrc.h"
#include "wire/tap.h"

namespace weft::roce {

// Collects packets that go the same way and have the same size, and sends them as one train, closed
// by their ICRCs. The last one may be shorter. One thread at a time, and another one that asks
// narrow_path() and errors_seen().
class Trains {
 public:
  // `capture`, if not null, hears of what leaves.
  Trains(os::UdpSocket& socket, wire::Tap* capture);

  // So many packets of one size are at hand, of which the next is the first: where they take
  // several trains, these are equally long, so that the peer looks at one while the next is made.
  void expect(std::size_t packets) { expected_ = packets; }
  // Where to write the next packet, from its base header to its padding; there is room for the
  // largest. Empty while the socket takes nothing: try again later.
  std::span<std::byte> place();
  // What was written there is a packet of `length` bytes that goes that path, which must live until
  // flush().
  void add(const Path& path, std::size_t length);
  // Sends the collected packets. A send error other than EAGAIN drops the packets, as a network
  // loses them.
  void flush();

  // Once: a peer for which packets were too large for the path, as the system says. They went in
  // fragments.
  std::optional<os::SocketAddress> narrow_path();
  // That left, or were lost by the socket.
  std::uint64_t packets() const { return packets_; }
  // Forgets what was collected.
  void drop() {
    filled_ = count_ = 0;
    stuck_ = false;
  }
  // False while there is something that flush() would send.
  bool empty() const { return count_ == 0; }

  // True once after the socket said that errors have come back from the network.
  bool errors_seen() { return errors_seen_.load() && errors_seen_.exchange(false); }

 private:
  bool joins(const Path& path, std::size_t length) const;
  bool send();
  void record(std::size_t count) const;

  os::UdpSocket& socket_;
  wire::Tap* const capture_;
  // Not initialised, so that pages exist only where something was sent.
  const std::unique_ptr<std::byte[]> bytes_;
  wire::RouteCrc crc_;
  const Path* path_ = nullptr;
  Path stuck_path_;
  std::size_t segment_ = 0;  // bytes of all packets but the last
  std::size_t count_ = 0;
  std::size_t limit_ = 0;  // of count_
  std::size_t expected_ = 0;
  std::uint64_t packets_ = 0;
  std::size_t filled_ = 0;  // bytes of packets that were added
  bool ended_ = false;      // the last one was shorter
  bool stuck_ = false;      // the socket had no room for them
  std::atomic<bool> errors_seen_{false};
  std::atomic<bool> has_narrow_{false};
  std::mutex narrow_lock_;
  std::optional<os::SocketAddress> narrow_;
};

}  // namespace weft::roce
