// SPDX-License-Identifier: BSD-2-Clause
// What does a connected endpoint report to the manager of its connection?
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "os/clock.h"

namespace weft::messaging {

// Bytes that a control message may have at most; longer ones are refused unread.
inline constexpr std::size_t kMaxControlBytes = 1024;

// Hears what concerns the connection of one endpoint. Called with the endpoint's lock held: it may
// use Endpoint::peer(), and must not use anything else of the endpoint.
class ConnectionSink {
 public:
  virtual ~ConnectionSink() = default;
  // A control message of `source`. Neither the source nor the message has been checked.
  virtual void heard(std::uint32_t source, std::span<const std::byte> message) = 0;
  // The other end of the way that open_path() opened has gone, or the peer left without a control
  // message. `died`: its process ended, as far as can be told.
  virtual void lost(bool died) = 0;
  // The peer that accept_source() took can be sent to from now on, if that was not so at once.
  virtual void reached() = 0;
  // The poll after ConnectedPeer::part_later() has begun.
  virtual void parting_is_due() = 0;
  // For timeouts: called a few times per second while a thread polls or waits.
  virtual void tick(os::Time now) = 0;
};

}  // namespace weft::messaging
