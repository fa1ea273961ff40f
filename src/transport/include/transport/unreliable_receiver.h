// SPDX-License-Identifier: BSD-2-Clause
// What is made of the packets of an unreliable connection?
//
// (IBTA 9.8.) No packet is answered. A message counts if all its packets come, one after the other;
// else what has come of it is forgotten, though a write may have left bytes in the memory that it
// names, and all is dropped until the next message begins. That one is taken whatever its number
// is: so messages come in the order in which the network delivers them, and what the network
// delivers twice, comes twice. Of two messages no parts are ever mixed.
#pragma once

#include <optional>

#include "transport/drops.h"
#include "transport/inbound_message.h"
#include "transport/settings.h"
#include "wire/packet.h"
#include "work/target.h"

namespace weft::transport {

// The receiving half of an unreliable connection. One thread at a time; the caller moves the
// packets, whose ICRC it has checked, and whose sender is the peer.
class UnreliableReceiver {
 public:
  UnreliableReceiver(const Settings& settings, work::Target& target)
      : settings_(settings), message_(target), expected_(settings.first_expected) {}
  UnreliableReceiver(const UnreliableReceiver&) = delete;
  UnreliableReceiver& operator=(const UnreliableReceiver&) = delete;

  // Takes in a packet, or drops it.
  void take(const wire::Packet& packet);

  const Drops& drops() const { return drops_; }
  struct Counts {
    std::uint64_t packets = 0;   // that were taken
    std::uint64_t messages = 0;  // sends and writes that came whole
    std::uint64_t broken = 0;    // that had begun, and did not
  };
  const Counts& counts() const { return counts_; }

 private:
  std::optional<Drop> refusal_of(const wire::Packet& packet);
  void break_message();

  const Settings settings_;
  InboundMessage message_;
  Psn expected_;
  bool dropping_ = false;  // until a message begins
  Drops drops_;
  Counts counts_;
};

}  // namespace weft::transport
