// SPDX-License-Identifier: BSD-2-Clause
// What becomes of packets on their way, in the weather of a simulation? The simulators of cm and
// rdm share this network.
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

// Packets that are under way between the ends of a simulation, on a clock of its own. An envelope
// says where a packet goes, and all else that its receiver knows of it. Everything follows from a
// seed.
template <class Envelope>
class SimulatedNetwork {
 public:
  struct Parcel : Envelope {
    Bytes bytes;
    Time when;
    std::uint64_t order = 0;  // among those of one moment
  };

  SimulatedNetwork(const Weather& weather, std::uint64_t seed) : weather_(weather), random_(seed) {}

  // A packet is sent into the weather. Of each copy that gets through on_arrival(parcel) may change
  // the envelope, or return false: then it does not arrive either.
  template <class OnArrival>
  void carry(const Envelope& envelope, const Bytes& packet, OnArrival on_arrival) {
    if (is_lost(packet.size())) return;
    const unsigned copies = happens(random_, weather_.duplication) ? 2 : 1;
    for (unsigned i = 0; i < copies; ++i) {
      Parcel parcel{envelope, packet, {}, 0};
      if (happens(random_, weather_.corruption)) {
        parcel.bytes[up_to(random_, packet.size() - 1)] ^=
            static_cast<std::byte>(1 + up_to(random_, 254));
      }
      parcel.when = now + weather_.delay;
      if (happens(random_, weather_.reordering)) {
        parcel.when += Duration(up_to(random_, static_cast<std::uint64_t>(weather_.late.count())));
      }
      if (on_arrival(parcel)) put(std::move(parcel));
    }
  }
  void carry(const Envelope& envelope, const Bytes& packet) {
    carry(envelope, packet, [](const Parcel&) { return true; });
  }
  // Arrives at that time, whatever the weather.
  void put(Time when, const Envelope& envelope, Bytes packet) {
    put({envelope, std::move(packet), when, 0});
  }
  // When the next packet arrives somewhere; Time::max() when none is under way.
  Time next() const { return parcels_.empty() ? Time::max() : parcels_.front().when; }
  Parcel take() {
    std::ranges::pop_heap(parcels_, is_later);
    Parcel parcel = std::move(parcels_.back());
    parcels_.pop_back();
    return parcel;
  }
  // From now on the weather is fine.
  void repair() { weather_ = Weather{}; }
  Random& random() { return random_; }

  Time now{};

 private:
  static bool is_later(const Parcel& a, const Parcel& b) {
    return a.when != b.when ? a.when > b.when : a.order > b.order;
  }
  bool is_lost(std::size_t size) {
    const Duration since_begin = now.time_since_epoch();
    if (since_begin >= weather_.cut_from && since_begin < weather_.cut_until) return true;
    if (since_begin >= weather_.hole_from && size > weather_.hole) return true;
    losing_ = happens(random_, losing_ ? std::max(weather_.burst, weather_.loss) : weather_.loss);
    return losing_;
  }
  void put(Parcel parcel) {
    parcel.order = order_++;
    parcels_.push_back(std::move(parcel));
    std::ranges::push_heap(parcels_, is_later);
  }

  Weather weather_;
  Random random_;
  std::vector<Parcel> parcels_;  // a heap, the next one first
  std::uint64_t order_ = 0;
  bool losing_ = false;
};

}  // namespace weft::transport::testing
