// SPDX-License-Identifier: BSD-2-Clause
// Which senders get congestion notification packets?
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <utility>

#include "os/clock.h"
#include "wire/icrc.h"
#include "wire/packet.h"

namespace weft::roce {

// Tells senders whose packets a switch has marked (explicit congestion notification: both bits of
// the traffic class), each queue pair at most once per kInterval. (IBTA annex A17.9.) One for a
// port. One thread at a time; the caller moves the packets.
class CongestionNotifier {
 public:
  static constexpr os::Time::duration kInterval = std::chrono::microseconds(50);
  // A packet without its ICRC.
  static constexpr std::size_t kBytes = wire::kBthBytes + 16;

  // A packet came over `route`, marked, from queue pair `sender` of 24 bits. Writes the
  // notification for that, which has to go back that way, into `out`, and returns its length; 0
  // when that queue pair was told not long ago. `flow_identity`: what only the ends of the flow
  // know, see flow_identity_of(); 0 where there is no such thing.
  std::size_t notify(const wire::Route& route, std::uint32_t sender, std::uint32_t flow_identity,
                     os::Time now, std::span<std::byte, kBytes> out);
  // The flow identity that a notification carries, in the first 4 of its 16 reserved bytes, which
  // other senders leave 0.
  static std::uint32_t flow_identity_of(const wire::Packet& notification);

  // How many queue pairs it remembers: those that were told lately, and some more.
  std::size_t remembered() const { return sent_at_.size(); }

 private:
  // Address and queue pair.
  using MarkedSender = std::pair<std::array<std::byte, 16>, std::uint32_t>;
  static constexpr std::size_t kFew = 64;

  void forget_old(os::Time now);

  std::map<MarkedSender, os::Time> sent_at_;
  std::size_t many_ = kFew;
};

}  // namespace weft::roce
