// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint read the management datagrams that lie in its mailbox?
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "link_shm/layout.h"
#include "os/mapping.h"
#include "os/socket_address.h"

namespace weft::shm {

// A datagram of the endpoint that calls itself by that address, which is empty if it is malformed.
using MadSink = std::function<void(const os::SocketAddress&, std::span<const std::byte>)>;

// The owner's end of the MadCells. The mapping of the file's first kSlotsAt bytes outlives it. One
// thread.
class MadReader {
 public:
  // Without a sink nothing is read, and no cell is there.
  MadReader(const os::Mapping& memory, MadSink sink) : memory_(memory), sink_(std::move(sink)) {}

  // Hands over the datagrams in these cells, in the order in which they were sent; returns how
  // many.
  unsigned take(std::uint64_t cells);

 private:
  void take_one(MadCell& cell);

  const os::Mapping& memory_;
  const MadSink sink_;
};

}  // namespace weft::shm
