// SPDX-License-Identifier: BSD-2-Clause
// What becomes of packets on their way, in the weather of the simulator.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "simulator.h"
#include "wire/icrc.h"
#include "wire/packet.h"

namespace weft::transport::testing {

using Bytes = std::vector<std::byte>;

inline wire::Route route(unsigned from, unsigned to) {
  wire::Route route;
  route.source = {std::byte{10}, std::byte{0}, std::byte{0}, static_cast<std::byte>(from + 1)};
  route.destination = {std::byte{10}, std::byte{0}, std::byte{0}, static_cast<std::byte>(to + 1)};
  route.source_port = static_cast<std::uint16_t>(40'000 + from);
  route.destination_port = static_cast<std::uint16_t>(40'000 + to);
  return route;
}

// A packet with its CRC.
inline Bytes sealed(const wire::Route& route, Bytes packet) {
  const std::uint32_t crc = wire::icrc(route, packet);
  packet.resize(packet.size() + wire::kIcrcBytes);
  wire::store_icrc(packet.data() + packet.size() - wire::kIcrcBytes, crc);
  return packet;
}

// True for a packet that was not changed.
inline bool intact(const wire::Route& route, const Bytes& packet) {
  return wire::check_icrc(route, packet) == wire::Ipv4Words{};
}

class Air {
 public:
  explicit Air(const Weather& weather) : weather_(weather) {}

  // A packet is sent: calls arrives(when, packet) for each copy of it that arrives somehow.
  template <class Arrives>
  void carry(const Bytes& packet, Time now, Random& random, Arrives arrives) {
    const Duration since_begin = now.time_since_epoch();
    if (since_begin >= weather_.cut_from && since_begin < weather_.cut_until) return;
    if (since_begin >= weather_.hole_from && packet.size() > weather_.hole) return;
    losing_ = happens(random, losing_ ? std::max(weather_.burst, weather_.loss) : weather_.loss);
    if (losing_) return;
    const unsigned copies = happens(random, weather_.duplication) ? 2 : 1;
    for (unsigned i = 0; i < copies; ++i) {
      Bytes copy = packet;
      if (happens(random, weather_.corruption)) {
        copy[up_to(random, copy.size() - 1)] ^= static_cast<std::byte>(1 + up_to(random, 254));
      }
      Duration delay = weather_.delay;
      if (happens(random, weather_.reordering)) {
        delay += Duration(up_to(random, static_cast<std::uint64_t>(weather_.late.count())));
      }
      arrives(now + delay, std::move(copy));
    }
  }

 private:
  const Weather& weather_;
  bool losing_ = false;
};

}  // namespace weft::transport::testing
