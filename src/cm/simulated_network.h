// SPDX-License-Identifier: BSD-2-Clause
// What becomes of messages between the processes of a simulation? They travel as packets in the
// weather of transport's simulator, or through mailboxes, on a clock of their own. Everything
// follows from a seed.
#pragma once

#include <functional>
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

// The ends of a message of a connection manager, or of data of a queue pair.
struct Envelope {
  Remote from;
  Remote to;
  bool data = false;
};

class Network : public transport::testing::SimulatedNetwork<Envelope> {
 public:
  // `full`: the probability that a socket or a mailbox has no room.
  Network(const Weather& weather, double full, std::uint64_t seed)
      : SimulatedNetwork(weather, seed), full_(full) {
    now += std::chrono::microseconds(1);
  }

  // A packet that was changed on its way fails its ICRC and is dropped.
  void send(const Remote& from, const Remote& to, bool data, const Bytes& bytes) {
    const Envelope envelope{from, to, data};
    if (sent) sent({envelope, bytes, now, 0});
    if (happens(random(), full_)) return;
    if (to.carrier == Carrier::kMailbox) {
      return put(now + std::chrono::microseconds(1), envelope, bytes);
    }
    carry(envelope, bytes, [&](const Parcel& parcel) { return parcel.bytes == bytes; });
  }
  // A message arrives after all, at once.
  void inject(const Remote& from, const Remote& to, const Bytes& bytes) {
    put(now, {from, to, false}, bytes);
  }
  // From now on nothing gets lost.
  void repair() {
    SimulatedNetwork::repair();
    full_ = 0;
  }

  std::function<void(const Parcel&)> sent;  // sees each message that is sent

 private:
  double full_;
};
using Parcel = Network::Parcel;

}  // namespace weft::cm::testing
