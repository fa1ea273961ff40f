// SPDX-License-Identifier: BSD-2-Clause
// Do the peers of established connections live?
#include "liveness.h"

namespace weft::cm {
namespace {

constexpr std::uint8_t kInvalidId = 1;
constexpr std::uint8_t kNotSupported = 2;
// The first repetition of a suspected peer's probe.
constexpr auto kFirstPause = std::chrono::milliseconds(50);
// From when on a deadline was missed.
constexpr auto kLate = std::chrono::milliseconds(100);
// Forged messages start no more than one probe in this time.
constexpr auto kBetweenSuspicions = std::chrono::milliseconds(200);

bool is_watched(const CmConnection& connection) {
  return connection.watched && connection.phase == Phase::kEstablished;
}

Time data_received(const CmConnection& connection) {
  return connection.user->last_received(connection.id, connection.context);
}

wire::CmApr reply_to(const wire::CmLap& lap, std::uint8_t status, std::uint64_t guid) {
  wire::CmApr apr;
  apr.local_id = lap.remote_id;
  apr.remote_id = lap.local_id;
  apr.status = status;
  apr.info_length = put_guid(apr.info, guid);
  return apr;
}

}  // namespace

WatchedPeer& Liveness::peer_of(const CmConnection& connection) {
  WatchedPeer& peer = core_.peers.get(connection.remote, connection.remote_guid);
  if (peer.times == nullptr) {
    const AgentOptions& options = core_.options;
    peer.times = core_.host.is_near(peer.remote) ? &options.near_watch : &options.watch;
  }
  return peer;
}

void Liveness::watch(CmConnection& connection, Time now) {
  if (!is_watched(connection)) return;
  WatchedPeer& peer = peer_of(connection);
  connection.place.enter(peer.connections, connection.id);
  note_received(peer, now);
}

void Liveness::suspect(const CmConnection& connection, Time now) {
  if (!is_watched(connection)) return;
  suspect(peer_of(connection), connection.id, now);
}

void Liveness::check(const CmConnection& connection, Time now) {
  if (!is_watched(connection)) return;
  WatchedPeer& peer = peer_of(connection);
  if (peer.probe == nullptr) ask(peer, connection.id, probe_times(peer, kFirstPause, now), now);
}

Time Liveness::last_received(const CmConnection& connection) {
  if (!is_watched(connection)) return {};
  return peer_of(connection).last_received;
}

void Liveness::suspect_all(const Remote& remote, Time now) {
  for (WatchedPeer* peer : core_.peers.at(remote)) {
    if (peer->connections.size() != 0) suspect(*peer, peer->connections.oldest(), now);
  }
}

bool Liveness::suspect_others(const Remote& remote, std::uint64_t guid, Time now) {
  bool found = false;
  for (WatchedPeer* peer : core_.peers.at(remote)) {
    if (peer->guid == guid || peer->connections.size() == 0) continue;
    suspect(*peer, peer->connections.oldest(), now);
    found = true;
  }
  return found;
}

void Liveness::suspect(WatchedPeer& peer, ConnectionId id, Time now) {
  if (peer.is_suspect || now < peer.next_suspicion) return;
  peer.is_suspect = true;
  const auto limit = peer.times->suspect_timeout;
  ask(peer, id, {kFirstPause, limit, limit}, now);
}

// A new transaction id each time: an answer to an earlier probe proves nothing.
void Liveness::ask(WatchedPeer& peer, ConnectionId id, const RepeatTimes& times, Time now) {
  peer.probe = std::make_unique<PeerProbe>();
  peer.probe->about = id;
  peer.probe->transaction = core_.host.random();
  peer.probe->asked = now;
  peer.probe->timer.start(times, RepeatTimer::kWithoutEnd, now);
  arm(peer, peer.probe->timer.due());
  send_probe(peer);
}

// Null when it is gone. Another peer's connection may have its id by then.
CmConnection* Liveness::probed(const WatchedPeer& peer) {
  CmConnection* const connection = core_.entries.find(peer.probe->about);
  const bool is_its = connection != nullptr && connection->remote == peer.remote &&
                      connection->remote_guid == peer.guid;
  return is_its ? connection : nullptr;
}

void Liveness::send_probe(const WatchedPeer& peer) {
  const CmConnection* connection = probed(peer);
  if (connection == nullptr) return;
  wire::CmLap lap;
  lap.local_id = connection->id;
  lap.remote_id = connection->remote_id;
  lap.remote_qpn = connection->remote_qpn;
  core_.host.send(peer.remote, connection->id, compose(peer.probe->transaction, lap));
}

void Liveness::on_lap(const CmArrival& arrival, const wire::CmLap& lap) {
  CmConnection* connection = core_.between(arrival, lap.remote_id, lap.local_id);
  // From another address of its peer, or forged: saying that it is unknown would end it.
  const CmConnection* named = core_.entries.find(lap.remote_id);
  const bool is_known = named != nullptr && named->remote_id == lap.local_id;
  if (connection == nullptr && is_known) return;
  if (connection == nullptr || connection->phase == Phase::kTimeWait) {
    return core_.answer(arrival, reply_to(lap, kInvalidId, core_.options.guid));
  }
  // A requester that probes has the REP, but its RTU was lost.
  if (connection->phase == Phase::kRepSent) core_.repeat(*connection);
  if (is_watched(*connection)) note_lap(*connection, arrival.now);
  const wire::CmApr apr = reply_to(lap, kNotSupported, core_.options.guid);
  core_.host.send(connection->remote, connection->id, compose(arrival.mad.transaction, apr));
}

// It spares the next probe if that were one of the same connection. A suspicion is ended by answers
// only.
void Liveness::note_lap(CmConnection& connection, Time now) {
  WatchedPeer& peer = peer_of(connection);
  const bool is_next = peer.connections.oldest() == connection.id;
  connection.place.enter(peer.connections, connection.id);
  if (is_next && !peer.is_suspect) note_received(peer, now);
}

void Liveness::on_apr(const CmArrival& arrival, const wire::CmApr& apr) {
  for (WatchedPeer* peer : core_.peers.at(arrival.from)) {
    const PeerProbe* probe = peer->probe.get();
    const bool is_meant = probe != nullptr && probe->about == apr.remote_id &&
                          probe->transaction == arrival.mad.transaction;
    if (!is_meant) continue;
    const bool is_other = apr.info_length == sizeof peer->guid && get_guid(apr.info) != peer->guid;
    if (is_other) return lose_all(*peer, arrival.now);
    if (apr.status != kInvalidId) return note_received(*peer, arrival.now);
    CmConnection* connection = probed(*peer);
    const bool is_named = connection != nullptr && connection->remote_id == apr.local_id;
    if (is_named && is_watched(*connection)) lose(*connection, arrival.now);
    return note_received(*peer, arrival.now);
  }
  core_.stats.add(Stat::kInvalidMessages);
}

void Liveness::advance(Time now) {
  while (due() <= now) on_timer(*core_.peer_deadlines.next().second, now);
}

void Liveness::on_timer(WatchedPeer& peer, Time now) {
  if (peer.connections.size() == 0) {
    arm(peer, Time::max());
    return core_.peers.remove(peer);
  }
  if (peer.probe == nullptr) return look_after(peer, now);
  PeerProbe& probe = *peer.probe;
  if (now > peer.due + kLate && !probe.is_postponed) {
    // This process has not run: the answers may be waiting behind this call.
    probe.is_postponed = true;
    probe.timer.end = std::max(probe.timer.end, after(now, peer.times->suspect_timeout));
  }
  if (probe.timer.end <= now) {
    const Time data = last_data(peer);
    return data > probe.asked ? note_received(peer, data) : lose_all(peer, now);
  }
  if (probed(peer) == nullptr) probe.about = peer.connections.oldest();
  send_probe(peer);
  probe.timer.step(now);
  arm(peer, probe.timer.due());
}

// One connection of an idle peer in turn, so that its number of connections does not matter.
void Liveness::look_after(WatchedPeer& peer, Time now) {
  CmConnection& connection = *core_.entries.find(peer.connections.oldest());
  connection.place.enter(peer.connections, connection.id);
  const Time data = std::min(now, data_received(connection));
  if (after(data, peer.times->probe_after) > now) return note_received(peer, data);
  ask(peer, connection.id, probe_times(peer, peer.times->probe_after, now), now);
}

// Until the peer has been silent for `peer_timeout`.
RepeatTimes Liveness::probe_times(const WatchedPeer& peer, std::chrono::nanoseconds first,
                                  Time now) const {
  const auto left = std::max<std::chrono::nanoseconds>(
      after(peer.last_received, core_.options.peer_timeout) - now, peer.times->suspect_timeout);
  return {first, peer.times->probe_after, left};
}

Time Liveness::last_data(const WatchedPeer& peer) const {
  Time last{};
  for (const ConnectionId id : peer.connections.ids()) {
    last = std::max(last, data_received(*core_.entries.find(id)));
  }
  return last;
}

// It lives, or did then.
void Liveness::note_received(WatchedPeer& peer, Time last_received) {
  if (peer.is_suspect) peer.next_suspicion = last_received + kBetweenSuspicions;
  peer.is_suspect = false;
  peer.probe.reset();
  peer.last_received = std::max(peer.last_received, last_received);
  // One end is earlier than the other, which its probe spares one.
  const auto later =
      core_.options.guid > peer.guid ? peer.times->probe_after / 8 : std::chrono::nanoseconds(0);
  arm(peer, after(after(peer.last_received, peer.times->probe_after), later));
}

void Liveness::lose(CmConnection& connection, Time now) {
  core_.end(connection, EventKind::kPeerLost);
  core_.rest(connection, now);
}

void Liveness::lose_all(WatchedPeer& peer, Time now) {
  while (peer.connections.size() != 0) {
    lose(*core_.entries.find(peer.connections.oldest()), now);
  }
  arm(peer, Time::max());
  core_.peers.remove(peer);
}

}  // namespace weft::cm
