// SPDX-License-Identifier: BSD-2-Clause
// Which established connections has each peer that is watched?
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "connection.h"

namespace weft::cm {

// A question that its peer has not answered yet.
struct PeerProbe {
  ConnectionId about = 0;
  std::uint64_t transaction = 0;  // random
  RepeatTimer timer;
  Time asked{};               // first
  bool is_postponed = false;  // its end, because this process did not run
};

// One instance of a connection manager, with which there were watched connections.
struct WatchedPeer {
  Remote remote;
  std::uint64_t guid = 0;
  std::uint64_t number = 0;  // in the order of their first connections
  const WatchTimes* times = nullptr;
  AgeList connections;   // the one that was probed last is the youngest
  Time last_received{};  // last sign of life
  Time due = Time::max();
  std::unique_ptr<PeerProbe> probe;  // the one under way
  bool is_suspect = false;           // something suggests that the peer is gone
  Time next_suspicion{};             // until then suspicions start no probe
};

// By which deadlines name a peer: the order of equal ones is the same in each run.
using PeerKey = std::pair<std::uint64_t, WatchedPeer*>;

// All watched peers of an agent. Pointers stay valid until remove().
class WatchedPeers {
 public:
  explicit WatchedPeers(std::uint64_t seed) : seed_(seed) {}

  // The peer, which is made if need be.
  WatchedPeer& get(const Remote& remote, std::uint64_t guid);
  // All instances at that address.
  std::vector<WatchedPeer*> at(const Remote& remote);
  // Its list of connections is empty by then.
  void remove(WatchedPeer& peer);

 private:
  std::uint64_t hash(const Remote& remote) const;

  const std::uint64_t seed_;
  std::uint64_t last_ = 0;
  std::unordered_multimap<std::uint64_t, WatchedPeer> peers_;
};

}  // namespace weft::cm
