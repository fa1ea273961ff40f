// SPDX-License-Identifier: BSD-2-Clause
// What does an engine for reliable datagrams need of the port that it speaks through?
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "os/clock.h"
#include "os/udp_path.h"
#include "roce/path.h"

namespace weft::rdm {

// Packets out, packets in, the time and random numbers: all that an engine sees of the world. A
// port over a socket is one, a simulated network another. One thread at a time.
class Host {
 public:
  // What receive() did.
  struct Received {
    unsigned packets = 0;
    bool emptied = false;  // it found that nothing was left to be read
  };

  // Where to write the next packet, from its base header to its padding; there is room for the
  // largest. Empty while there is no room for one: try again later.
  virtual std::span<std::byte> place() = 0;
  // What was written there is a packet of `length` bytes that goes that path, which must live until
  // flush(). It leaves at flush() at the latest.
  virtual void add(const roce::Path& path, std::size_t length) = 0;
  // So many packets of one size are at hand, of which the next is the first.
  virtual void expect(std::size_t packets) = 0;
  virtual void flush() = 0;
  // True while there is something that flush() would send.
  virtual bool pending() const = 0;
  // Notifies the sender of a packet that arrived ECN-marked, as roce::PacketPort::send_cnp().
  virtual void send_cnp(const roce::Path& path, std::uint32_t sender, std::uint32_t token,
                        os::Time now) = 0;

  // Hands over what has come, by the engine's take() and its like.
  virtual Received receive() = 0;
  // The path from this port to a peer. Errors: those of roce::path_from().
  virtual Result<os::UdpPath> path_to(const os::SocketAddress& peer) = 0;
  // The engine has something to do, and may have to be polled for it.
  virtual void wake() = 0;
  virtual os::Time now() = 0;
  virtual std::uint64_t random() = 0;

 protected:
  ~Host() = default;
};

}  // namespace weft::rdm
