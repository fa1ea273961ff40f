// SPDX-License-Identifier: BSD-2-Clause
// How does a requester make a connection? (IBTA 12.9.7.1)
#include "active_side.h"

#include <string>

namespace weft::cm {
namespace {

std::vector<std::byte> ready(const CmConnection& connection, std::span<const std::byte> data) {
  wire::CmRtu rtu;
  rtu.local_id = connection.id;
  rtu.remote_id = connection.remote_id;
  put_data(rtu.data, data);
  return compose(connection.transaction, rtu);
}

}  // namespace

Result<ConnectionId> ActiveSide::connect(const ConnectRequest& request, User& user, void* context,
                                         Time now) {
  if (const Status fits = check_length(request.more, kMaxMorePrivateData); !fits) {
    return fits.error();
  }
  if (request.other && !request.to.is_of_same_host(*request.other)) {
    return Error{EINVAL, request.other->address.text() + " and " + request.to.address.text() +
                             " are not of one host"};
  }
  CmConnection* connection = core_.entries.add();
  if (connection == nullptr) return no_free_id();
  connection->role = Role::kRequester;
  connection->watched = request.watched;
  connection->remote = request.to;
  connection->transaction = core_.host.random();
  connection->own_qpn = request.req.qpn;
  connection->user = &user;
  connection->context = context;
  if (request.other || request.ends_unreachable) {
    const Time from = request.other ? after(now, request.other_after) : Time::max();
    Core::task_of(*connection).unanswered = std::make_unique<UnansweredReq>(
        UnansweredReq{request.other, from, request.ends_unreachable});
    connection->place.enter(core_.unanswered, connection->id);
  }
  wire::CmReq req = request.req;
  req.local_id = connection->id;
  req.ca_guid = core_.options.guid;
  core_.start(*connection, compose(connection->transaction, req, request.more), request.repeats,
              RepeatTimer::kWithoutEnd, now);
  return connection->id;
}

Status ActiveSide::confirm(ConnectionId id, std::span<const std::byte> data, Time now) {
  CmConnection* connection = core_.entries.find(id);
  if (connection == nullptr || connection->phase != Phase::kRepReceived) return no_connection(id);
  if (Status fits = check_length(data, sizeof wire::CmRtu::data); !fits) return fits;
  std::vector<std::byte> rtu = ready(*connection, data);
  core_.host.send(connection->remote, id, rtu);
  // A repeated REP is answered by the same RTU: without private data it need not be kept.
  Core::task_of(*connection).kept = data.empty() ? std::vector<std::byte>() : std::move(rtu);
  core_.settle(*connection);
  liveness_.watch(*connection, now);
  return {};
}

void ActiveSide::on_rep(const CmArrival& arrival, const wire::CmRep& rep) {
  CmConnection* connection = core_.answered(arrival, rep.remote_id, rep.local_id);
  if (connection == nullptr) {
    if (core_.entries.find(rep.remote_id) != nullptr) return;
    return core_.answer(arrival, kAnswersRep, wire::CmReason::kInvalidId, rep.local_id);
  }
  if (connection->role != Role::kRequester) return core_.stats.add(Stat::kInvalidMessages);
  if (connection->phase == Phase::kReqSent) return on_first_rep(*connection, arrival, rep);
  const bool is_same =
      connection->remote_guid == rep.ca_guid && connection->remote_qpn == queue_pair_of(rep);
  if (connection->remote_id != 0 && !is_same) {
    // Another instance, which has given the same number, has answered a late copy of the REQ.
    core_.stats.add(Stat::kInvalidMessages);
    liveness_.suspect_others(arrival.from, rep.ca_guid, arrival.now);
    return;
  }
  on_repeated_rep(*connection);
}

void ActiveSide::on_first_rep(CmConnection& connection, const CmArrival& arrival,
                              const wire::CmRep& rep) {
  if (rep.local_id == 0) return core_.stats.add(Stat::kInvalidMessages);
  liveness_.suspect_others(arrival.from, rep.ca_guid, arrival.now);
  connection.phase = Phase::kRepReceived;
  connection.remote_id = rep.local_id;
  connection.remote_guid = rep.ca_guid;
  connection.remote_qpn = queue_pair_of(rep);
  const auto limit = connection.task->timer.times.limit;
  connection.place.leave();
  core_.drop_task(connection);
  core_.wait(connection, after(arrival.now, limit));
  core_.events.add(connection, EventKind::kReply, &arrival);
}

// The RTU was lost, or the user has not decided yet.
void ActiveSide::on_repeated_rep(CmConnection& connection) {
  if (connection.phase == Phase::kRepReceived) {
    return core_.ask_for_time(connection, kAnswersRep, kDecisionTime);
  }
  if (connection.phase == Phase::kEstablished && connection.task == nullptr) {
    return core_.host.send(connection.remote, connection.id, ready(connection, {}));
  }
  if (connection.phase != Phase::kDreqSent) core_.repeat(connection);
}

}  // namespace weft::cm
