// SPDX-License-Identifier: BSD-2-Clause
// What becomes of messages between the processes of a simulation? They travel as packets in the
// weather of transport's simulator, or through mailboxes, on a clock of their own. Everything
// follows from a seed.
#pragma once

#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "cm/host.h"
#include "cm/remote.h"
#include "os/loopback_support.h"
#include "simulator_network.h"

namespace weft::cm::testing {

using transport::testing::Bytes;
using transport::testing::happens;
using transport::testing::Random;
using transport::testing::up_to;
using transport::testing::Weather;

// The address of process `number` when processes are spread over so many hosts.
inline os::SocketAddress address_of_process(unsigned number, unsigned hosts) {
  return os::address_of("10.0.0." + std::to_string(number % hosts + 1),
                        static_cast<std::uint16_t>(40'000 + number));
}

// Where each host may have a relay: its port that no process of a simulation has.
inline constexpr std::uint16_t kRelayPort = 4791;

// A message of a connection manager, or data of a queue pair.
struct Parcel {
  Time when;
  std::uint64_t order = 0;
  Remote from;
  Remote to;
  bool data = false;
  Bytes bytes;
  bool operator<(const Parcel& other) const {
    return when != other.when ? when > other.when : order > other.order;
  }
};

class Network {
 public:
  // `full`: the probability that a socket or a mailbox has no room.
  Network(const Weather& weather, double full, std::uint64_t seed)
      : weather_(weather), full_(full), random_(seed) {}

  // A packet that was changed on its way fails its ICRC and is dropped.
  void send(const Remote& from, const Remote& to, bool data, const Bytes& bytes) {
    Parcel parcel{now, 0, from, to, data, bytes};
    if (sent) sent(parcel);
    if (happens(random_, full_)) return;
    if (to.carrier == Carrier::kMailbox) {
      parcel.when = now + std::chrono::microseconds(1);
      return put(std::move(parcel));
    }
    air_.carry(bytes, now, random_, [&](Time when, Bytes copy) {
      if (copy != bytes) return;
      parcel.when = when;
      put(parcel);
    });
  }
  // A message arrives after all, at once.
  void inject(const Remote& from, const Remote& to, const Bytes& bytes) {
    put({now, 0, from, to, false, bytes});
  }
  // From now on nothing gets lost.
  void repair() {
    weather_ = Weather{};
    full_ = 0;
  }
  // When the next message arrives somewhere; Time::max() when none is under way.
  Time next() const { return parcels_.empty() ? Time::max() : parcels_.top().when; }
  Parcel take() {
    Parcel parcel = parcels_.top();
    parcels_.pop();
    return parcel;
  }
  Random& random() { return random_; }

  Time now = Time{} + std::chrono::microseconds(1);
  std::function<void(const Parcel&)> sent;  // sees each message that is sent

 private:
  void put(Parcel parcel) {
    parcel.order = order_++;
    parcels_.push(std::move(parcel));
  }

  Weather weather_;
  double full_;
  Random random_;
  transport::testing::Air air_{weather_};
  std::priority_queue<Parcel> parcels_;
  std::uint64_t order_ = 0;
};

}  // namespace weft::cm::testing
