// SPDX-License-Identifier: BSD-2-Clause
// How do attempts and connections end?
#include "endings.h"

namespace weft::cm {
namespace {

constexpr std::size_t kMostOfRej = sizeof wire::CmRej::data + kMaxMorePrivateData;

// What a REJ of this side answers.
std::uint8_t answered_message(Phase phase) {
  if (phase == Phase::kReqReceived || phase == Phase::kReqSent) return kAnswersReq;
  return phase == Phase::kRepReceived ? kAnswersRep : kAnswersOther;
}

wire::CmDrep reply_to(const wire::CmDreq& dreq) {
  wire::CmDrep drep;
  drep.local_id = dreq.remote_id;
  drep.remote_id = dreq.local_id;
  return drep;
}

// The REQ, which may be forged, has drawn as many packets as it may. A REJ waits for the RTU, or
// for a repeated REQ.
bool has_drawn_all(const CmConnection& connection) {
  return connection.phase == Phase::kRepSent &&
         (connection.task == nullptr || connection.task->timer.left == 0);
}

// A requester that withdraws gives one of these reasons.
bool withdraws(wire::CmReason reason) {
  return reason == wire::CmReason::kTimeout || reason == wire::CmReason::kInvalidId;
}

}  // namespace

Status Endings::reject(ConnectionId id, wire::CmReason reason, std::span<const std::byte> data,
                       Time now) {
  CmConnection* connection = core_.entries.find(id);
  const bool open = connection != nullptr && (connection->phase == Phase::kReqReceived ||
                                              connection->phase == Phase::kRepReceived);
  if (!open) return no_connection(id);
  if (Status fits = check_length(data, kMostOfRej); !fits) return fits;
  give_up(*connection, reason, data, now);
  return {};
}

Status Endings::refuse(ConnectionId id, wire::CmReason reason, std::span<const std::byte> data,
                       Time now) {
  CmConnection* connection = core_.entries.find(id);
  if (connection == nullptr || connection->phase != Phase::kReqReceived) return no_connection(id);
  if (Status fits = check_length(data, kMostOfRej); !fits) return fits;
  core_.refuse(*connection, rejection(kAnswersReq, reason, core_.options.guid), data, now,
               core_.may_answer(connection->remote, now));
  return {};
}

void Endings::give_up(CmConnection& connection, wire::CmReason reason,
                      std::span<const std::byte> data, Time now) {
  core_.refuse(connection,
               rejection(answered_message(connection.phase), reason, core_.options.guid), data, now,
               !has_drawn_all(connection));
}

void Endings::disconnect(ConnectionId id, std::span<const std::byte> data, Time now) {
  core_.events.drop(id);
  CmConnection* connection = core_.entries.find(id);
  if (connection == nullptr) return;
  const std::span<const std::byte> shorter =
      data.first(std::min(data.size(), sizeof wire::CmRej::data));
  switch (connection->phase) {
    case Phase::kReqSent:
      return give_up(*connection, wire::CmReason::kTimeout, shorter, now);
    case Phase::kRepReceived:
    case Phase::kReqReceived:
    case Phase::kRepSent:
      return give_up(*connection, wire::CmReason::kConsumer, shorter, now);
    case Phase::kEstablished:
      return send_dreq(*connection, data, now);
    case Phase::kSidrReqSent:
      return core_.forget(*connection);
    case Phase::kSidrReqReceived: {
      wire::CmSidrRep refused;
      refused.status = kRefused;
      return core_.answer_query(*connection, refused, now);
    }
    case Phase::kDreqSent:
    case Phase::kTimeWait:
      return;
  }
}

void Endings::send_dreq(CmConnection& connection, std::span<const std::byte> data, Time now) {
  wire::CmDreq dreq;
  dreq.local_id = connection.id;
  dreq.remote_id = connection.remote_id;
  dreq.remote_qpn = connection.remote_qpn;
  put_data(dreq.data, data);
  connection.phase = Phase::kDreqSent;
  connection.place.leave();
  connection.user = nullptr;
  const std::uint64_t transaction =
      connection.watched ? connection.transaction : core_.host.random();
  core_.start(connection, compose(transaction, dreq), core_.options.disconnects,
              RepeatTimer::kWithoutEnd, now);
}

void Endings::abandon(ConnectionId id, Time now) {
  core_.events.drop(id);
  CmConnection* connection = core_.entries.find(id);
  if (connection != nullptr && connection->phase != Phase::kTimeWait) {
    core_.retire(*connection, {}, now);
  }
}

void Endings::on_timer(CmConnection& connection, Time now) {
  RepeatTimer& timer = connection.task->timer;
  if (timer.end <= now) return expire(connection, now);
  UnansweredReq* const unanswered = connection.task->unanswered.get();
  if (unanswered != nullptr && unanswered->other_from <= now) unanswered->ask_other();
  core_.repeat(connection);
  timer.step(now);
  core_.arm(connection);
}

// By the requester.
void Endings::fail(CmConnection& connection, EventKind kind, Time now) {
  core_.end(connection, kind);
  if (connection.phase == Phase::kSidrReqSent) return core_.forget(connection);
  give_up(connection, wire::CmReason::kTimeout, {}, now);
}

// Those without ConnectRequest::other or ends_unreachable go on: the report may be forged.
void Endings::on_unreachable(const Remote& at, Time now) {
  const std::list<ConnectionId> ids = core_.unanswered.ids();
  for (const ConnectionId id : ids) {
    CmConnection& connection = *core_.entries.find(id);
    UnansweredReq& req = *connection.task->unanswered;
    if (now < req.asked_again) continue;
    if (connection.remote == at) {
      req.is_unreachable = true;
      if (req.other_from != Time::max()) {
        req.ask_other();
        core_.arm(connection);
        core_.host.send(*req.other, id, connection.task->kept);
      }
    }
    if (req.other == at) req.is_other_unreachable = true;
    if (req.is_refused()) fail(connection, EventKind::kUnreachable, now);
  }
}

void Endings::expire(CmConnection& connection, Time now) {
  switch (connection.phase) {
    case Phase::kReqSent:
    case Phase::kRepReceived:
    case Phase::kSidrReqSent:
      return fail(connection, EventKind::kTimedOut, now);
    case Phase::kReqReceived:
    case Phase::kSidrReqReceived:
      core_.end(connection, EventKind::kTimedOut);
      return core_.retire(connection, {}, now);
    case Phase::kRepSent: {
      // The REQ may be forged, so that nothing more is sent, unless its source asks again.
      core_.end(connection, EventKind::kTimedOut);
      wire::CmRej rej = rejection(answered_message(connection.phase), wire::CmReason::kTimeout,
                                  core_.options.guid);
      rej.local_id = connection.id;
      rej.remote_id = connection.remote_id;
      return core_.retire(connection, compose(connection.transaction, rej), now);
    }
    case Phase::kDreqSent:
      return core_.rest(connection, now);
    case Phase::kEstablished:  // the REP is not asked for any more
      return core_.drop_task(connection);
    case Phase::kTimeWait:
      return core_.forget(connection);
  }
}

void Endings::on_rej(const CmArrival& arrival, const wire::CmRej& rej) {
  CmConnection* connection =
      rej.remote_id != 0
          ? core_.answered(arrival, rej.remote_id, rej.local_id)
          : core_.entries.find_request(arrival.from, rej.local_id, arrival.mad.transaction);
  if (connection == nullptr) {
    // A peer that does not know the queue pair of a packet knows no ids.
    const bool knows_none = rej.remote_id == 0 && rej.reason == wire::CmReason::kStale;
    return knows_none ? liveness_.suspect_all(arrival.from, arrival.now)
                      : suspect(arrival, rej.remote_id);
  }
  // Without an id of its sender it answers an earlier copy of the REQ, e.g. from before listen().
  const bool late = connection->role == Role::kRequester && connection->phase != Phase::kReqSent;
  if (late && rej.local_id == 0 && rej.message == kAnswersReq) {
    return core_.stats.add(Stat::kInvalidMessages);
  }
  switch (connection->phase) {
    case Phase::kReqSent:
    case Phase::kRepReceived:
      core_.end(*connection, EventKind::kRejected, &arrival);
      return core_.rest(*connection, arrival.now);
    case Phase::kReqReceived:
      core_.end(*connection, EventKind::kWithdrawn, &arrival);
      return core_.retire(*connection, {}, arrival.now);
    case Phase::kRepSent:
      core_.end(*connection, withdraws(rej.reason) ? EventKind::kWithdrawn : EventKind::kRejected,
                &arrival);
      return core_.retire(*connection, {}, arrival.now);
    case Phase::kEstablished:  // the peer has ended it before the RTU reached it, or lost it
      core_.end(*connection,
                rej.reason == wire::CmReason::kInvalidId ? EventKind::kPeerLost
                                                         : EventKind::kDisconnected,
                &arrival);
      return core_.rest(*connection, arrival.now);
    case Phase::kDreqSent:
      return core_.rest(*connection, arrival.now);
    case Phase::kSidrReqSent:
    case Phase::kSidrReqReceived:
    case Phase::kTimeWait:
      return;
  }
}

// Of a message from the peer's address that does not count.
void Endings::suspect(const CmArrival& arrival, ConnectionId id) {
  const CmConnection* connection = core_.entries.find(id);
  const bool is_its = connection != nullptr && connection->remote == arrival.from;
  if (is_its) liveness_.suspect(*connection, arrival.now);
}

// A DREQ of an unknown connection is answered, too: its DREP was lost.
void Endings::on_dreq(const CmArrival& arrival, const wire::CmDreq& dreq) {
  CmConnection* connection = core_.between(arrival, dreq.remote_id, dreq.local_id);
  if (connection == nullptr) return core_.answer(arrival, reply_to(dreq));
  const bool forged = connection->watched && connection->transaction != arrival.mad.transaction;
  if (forged || dreq.remote_qpn != connection->own_qpn) {
    core_.stats.add(Stat::kInvalidMessages);
    return suspect(arrival, connection->id);
  }
  switch (connection->phase) {
    case Phase::kEstablished:
      core_.end(*connection, EventKind::kDisconnected, &arrival);
      break;
    case Phase::kRepSent:
      core_.end(*connection, EventKind::kWithdrawn, &arrival);
      break;
    case Phase::kDreqSent:  // both ends disconnect at the same time
    case Phase::kTimeWait:
      break;
    case Phase::kReqSent:
    case Phase::kRepReceived:
    case Phase::kReqReceived:
    case Phase::kSidrReqSent:
    case Phase::kSidrReqReceived:
      return core_.stats.add(Stat::kInvalidMessages);
  }
  core_.host.send(connection->remote, connection->id,
                  compose(arrival.mad.transaction, reply_to(dreq)));
  if (connection->phase != Phase::kTimeWait) core_.rest(*connection, arrival.now);
}

void Endings::on_drep(const CmArrival& arrival, const wire::CmDrep& drep) {
  CmConnection* connection = core_.between(arrival, drep.remote_id, drep.local_id);
  if (connection != nullptr && connection->phase == Phase::kDreqSent) {
    core_.rest(*connection, arrival.now);
  }
}

}  // namespace weft::cm
