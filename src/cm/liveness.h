// SPDX-License-Identifier: BSD-2-Clause
// Do the peers of established connections live?
#pragma once

#include "agent_core.h"

namespace weft::cm {

// Probes (LAP, answered by APR) of idle and of suspected peers. Each peer has at most one probe
// under way, whatever makes it suspected.
class Liveness {
 public:
  explicit Liveness(Core& core) : core_(core) {}

  // An established connection, until its place is left.
  void watch(CmConnection& connection, Time now);
  // Probes the peer of a watched connection, which may just be slow.
  void check(const CmConnection& connection, Time now);
  // The last sign of life of a watched connection's peer.
  Time last_received(const CmConnection& connection);
  // Something suggests that a connection, or its peer, is gone; it may be forged. Nothing happens
  // when the connection is not watched.
  void suspect(const CmConnection& connection, Time now);
  void suspect_all(const Remote& remote, Time now);
  // True when connections with another instance at that address are watched: it is suspected then.
  bool suspect_others(const Remote& remote, std::uint64_t guid, Time now);

  void on_lap(const CmArrival& arrival, const wire::CmLap& lap);
  void on_apr(const CmArrival& arrival, const wire::CmApr& apr);

  // When advance() has something to do.
  Time due() const { return core_.peer_deadlines.due(); }
  void advance(Time now);

 private:
  WatchedPeer& peer_of(const CmConnection& connection);
  void suspect(WatchedPeer& peer, ConnectionId id, Time now);
  void ask(WatchedPeer& peer, ConnectionId id, const RepeatTimes& times, Time now);
  CmConnection* probed(const WatchedPeer& peer);
  void send_probe(const WatchedPeer& peer);
  void on_timer(WatchedPeer& peer, Time now);
  void look_after(WatchedPeer& peer, Time now);
  RepeatTimes probe_times(const WatchedPeer& peer, std::chrono::nanoseconds first, Time now) const;
  Time last_data(const WatchedPeer& peer) const;
  void note_lap(CmConnection& connection, Time now);
  void note_received(WatchedPeer& peer, Time last_received);
  void lose(CmConnection& connection, Time now);
  void lose_all(WatchedPeer& peer, Time now);
  void arm(WatchedPeer& peer, Time at) {
    core_.peer_deadlines.move({peer.number, &peer}, peer.due, at);
  }

  Core& core_;
};

}  // namespace weft::cm
