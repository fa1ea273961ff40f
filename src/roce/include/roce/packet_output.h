// SPDX-License-Identifier: BSD-2-Clause
// How do packets leave a port?
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "os/clock.h"
#include "roce/path.h"

namespace weft::roce {

// The packets of one port and address family on their way out: a socket's (PacketPort::output()),
// or a simulated network's. One thread at a time.
class PacketOutput {
 public:
  // Where to write the next packet, from its base header to its padding; there is room for the
  // largest. Empty while there is no room for one: try again later.
  virtual std::span<std::byte> place() = 0;
  // A packet of `length` bytes was written there and goes that path, which must live until flush().
  // It leaves at flush() at the latest.
  virtual void add(const Path& path, std::size_t length) = 0;
  // So many packets of one size are at hand, of which the next is the first.
  virtual void expect(std::size_t packets) = 0;
  virtual void flush() = 0;
  // True while there is something that flush() would send.
  virtual bool pending() const = 0;
  // Notifies the sender of a packet that arrived ECN-marked, as PacketPort::send_cnp().
  virtual void send_cnp(const Path& path, std::uint32_t sender, std::uint32_t flow_identity,
                        os::Time now) = 0;

 protected:
  ~PacketOutput() = default;
};

}  // namespace weft::roce
