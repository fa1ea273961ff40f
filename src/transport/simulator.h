// SPDX-License-Identifier: BSD-2-Clause
// A network that loses, repeats, delays, reorders and changes packets, on a clock of its own, and
// devices that send work to each other over it. Everything follows from a seed.
#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "transport/requester.h"
#include "transport/responder.h"
#include "wire/icrc.h"

namespace weft::transport::testing {

using Random = std::mt19937_64;

inline bool happens(Random& random, double probability) {
  return std::uniform_real_distribution<>(0, 1)(random) < probability;
}
inline std::uint64_t up_to(Random& random, std::uint64_t most) {
  return std::uniform_int_distribution<std::uint64_t>(0, most)(random);
}

// What the network does to packets.
struct Weather {
  double loss = 0;
  double burst = 0;  // that a loss goes on with the next packet
  double duplication = 0;
  double corruption = 0;
  double reordering = 0;  // that a packet takes much longer
  Duration delay = std::chrono::microseconds(10);
  Duration late = std::chrono::microseconds(200);  // how much longer at most
  Duration cut_from{};                             // nothing arrives between these two
  Duration cut_until{};
  Duration hole_from = Duration::max();  // from then on larger packets than that vanish
  std::size_t hole = wire::kMaxHeaderBytes + kSurePathMtu + wire::kIcrcBytes;
};

// What the flows and their users do.
struct Scenario {
  std::uint64_t seed = 0;
  unsigned devices = 2;
  unsigned works = 50;  // of each device, for each other one
  Weather weather;
  Settings settings;
  std::size_t longest = 20'000;
  double not_ready = 0;  // that a message finds no receive
  double refused = 0;    // that work is for memory that may not be accessed
  double gone = 0;       // that a read is for memory that is gone when it is read
  double given_up = 0;   // that a message is given up before a packet of it, of datagrams only
  bool detailed = true;  // then a refusal says why
  double fenced = 0;
  Duration enough = std::chrono::minutes(10);  // until then all must have ended

  // Drawn from a seed: everything that may differ, differs.
  static Scenario draw(std::uint64_t seed);
  std::string text() const;
};

// What came of it.
struct Outcome {
  std::string wrong;  // empty, or the first thing that was not as it must be
  Duration took{};
  std::uint64_t packets = 0;
  std::uint64_t again = 0;
  unsigned narrowed = 0;  // flows that agreed on smaller packets
  static constexpr std::size_t kStatuses = 32;
  std::uint64_t ended[kStatuses] = {};  // by status
};

// Runs all of it until all work has ended, and checks what everybody got.
Outcome run(const Scenario& scenario);

}  // namespace weft::transport::testing
