// SPDX-License-Identifier: BSD-2-Clause
// What does an engine for reliable datagrams need of the port that it speaks through?
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "os/clock.h"
#include "os/udp_path.h"
#include "roce/packet_output.h"

namespace weft::rdm {

// Packets out, packets in, the time and random numbers: all that an engine sees of the world. A
// port over a socket is one, a simulated network another. One thread at a time.
class Host {
 public:
  // Where packets leave; the same as long as the host lives.
  virtual roce::PacketOutput& output() = 0;
  // What receive() did.
  struct Received {
    unsigned packets = 0;
    bool emptied = false;  // it found that nothing was left to be read
  };

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
