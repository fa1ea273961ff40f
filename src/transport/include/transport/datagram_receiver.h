// SPDX-License-Identifier: BSD-2-Clause
// What is made of unreliable datagrams?
//
// (IBTA 9.8, annex A17.) Each is a message of its own, from any sender with the queue key. Its
// receive begins with forty bytes that tell where it came from (wire/global_route.h), whatever room
// that leaves for the payload.
#pragma once

#include <optional>

#include "transport/drops.h"
#include "transport/settings.h"
#include "transport/target.h"
#include "wire/global_route.h"
#include "wire/packet.h"

namespace weft::transport {

// The receiving half of a queue pair for unreliable datagrams. One thread at a time; the caller
// moves the packets, whose ICRC it has checked.
class DatagramReceiver {
 public:
  DatagramReceiver(const Settings& settings, Target& target)
      : settings_(settings), target_(target) {}
  DatagramReceiver(const DatagramReceiver&) = delete;
  DatagramReceiver& operator=(const DatagramReceiver&) = delete;

  // Takes in a packet that came so, or drops it. The target finds the sender in the packet that
  // message_ends() gets.
  void take(const wire::Packet& packet, const wire::Arrival& arrival);

  const Drops& drops() const { return drops_; }
  // Datagrams that were received.
  std::uint64_t messages() const { return messages_; }

 private:
  std::optional<Drop> refusal_of(const wire::Packet& packet, const wire::Arrival& arrival);

  const Settings settings_;
  Target& target_;
  Drops drops_;
  std::uint64_t messages_ = 0;
};

}  // namespace weft::transport
