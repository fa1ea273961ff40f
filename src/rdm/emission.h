// SPDX-License-Identifier: BSD-2-Clause
// Which flows have something to send, and when does it leave?
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "contexts.h"
#include "os/clock.h"
#include "roce/datagram_writer.h"
#include "shared.h"

namespace weft::rdm {

// Lets the packets of all flows of an endpoint leave. One thread at a time.
class Emission {
 public:
  Emission(Shared& shared, Contexts& contexts);

  // That flow has something to send at that time, or waits for something.
  void activate(Context& context, os::Time due);
  void activate(std::uint32_t context);
  // Sends the packets of the flow of that context without waiting for the next poll.
  void send_now(std::uint32_t context, os::Time now);
  // Sends a message to a peer's connection manager. Without room it is lost.
  void send_cm(const roce::Path& path, std::span<const std::byte> message);
  // Sends what flows have; with `all` acknowledgements that could be delayed, too.
  void emit(bool all);
  // A flow has something to do, or there was no room for what was to leave.
  bool has_to_emit() const { return emit_at_ <= shared_.now || shared_.output.pending(); }
  // When emit() has something to do.
  os::Time due() const { return emit_at_; }
  // Some flow has something under way.
  bool active() const { return !active_.empty(); }

 private:
  Shared& shared_;
  Contexts& contexts_;
  std::vector<std::uint32_t> active_;    // numbers of contexts
  std::vector<std::uint32_t> emitting_;  // the same, while they send
  os::Time emit_at_ = os::Time::max();
  roce::DatagramWriter cm_packets_;
};

}  // namespace weft::rdm
