// SPDX-License-Identifier: BSD-2-Clause
// What does a connection manager need of the port that it speaks through?
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cm/event.h"
#include "cm/remote.h"

namespace weft::cm {

// Messages out, and random numbers. One thread at a time.
class CmHost {
 public:
  // Sends a MAD, which may be followed by further private data, to queue pair 1 of `to`. `id` is
  // the connection of this end that it belongs to; 0 for an answer that no connection stands
  // behind. It may get lost: without room, too. It calls no function of the agent.
  virtual void send(const Remote& to, ConnectionId id, std::span<const std::byte> message) = 0;
  // Unpredictable for any peer.
  virtual std::uint64_t random() = 0;
  // A process of this host, so that the end of its socket is reported at once. Asked once for each
  // watched peer.
  virtual bool is_near(const Remote&) { return false; }

 protected:
  ~CmHost() = default;
};

}  // namespace weft::cm
