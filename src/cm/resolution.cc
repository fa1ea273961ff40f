// SPDX-License-Identifier: BSD-2-Clause
// How is the queue pair of a service for datagrams found? (IBTA 12.11)
#include "resolution.h"

#include <memory>
#include <utility>

namespace weft::cm {

Result<ConnectionId> Resolution::resolve(const ResolveRequest& request, User& user, void* context,
                                         Time now) {
  CmConnection* connection = core_.entries.add();
  if (connection == nullptr) return no_free_id();
  connection->phase = Phase::kSidrReqSent;
  connection->role = Role::kInquirer;
  connection->remote = request.to;
  connection->transaction = core_.host.random();
  connection->user = &user;
  connection->context = context;
  if (request.ends_unreachable) {
    auto unanswered = std::make_unique<UnansweredReq>();
    unanswered->ends_unreachable = true;
    Core::task_of(*connection).unanswered = std::move(unanswered);
    connection->place.enter(core_.unanswered, connection->id);
  }
  wire::CmSidrReq req = request.req;
  req.request = connection->id;
  core_.start(*connection, compose(connection->transaction, req), request.repeats,
              RepeatTimer::kWithoutEnd, now);
  return connection->id;
}

Status Resolution::answer(ConnectionId id, const wire::CmSidrRep& reply, Time now) {
  CmConnection* connection = core_.entries.find(id);
  if (connection == nullptr || connection->phase != Phase::kSidrReqReceived) {
    return no_connection(id);
  }
  core_.answer_query(*connection, reply, now);
  return {};
}

void Resolution::on_request(const CmArrival& arrival, const wire::CmSidrReq& request) {
  if (request.request == 0) return core_.stats.add(Stat::kInvalidMessages);
  CmConnection* known = core_.entries.find_request(arrival.from, request.request,
                                                   arrival.mad.transaction, Role::kResponder);
  // Nothing is kept of it while the user decides.
  if (known != nullptr) return core_.repeat(*known);
  ServiceListener* listener = core_.listeners.of_service(request.service);
  CmConnection* connection = listener == nullptr ? nullptr : core_.entries.add();
  if (connection == nullptr) {
    wire::CmSidrRep none;
    none.request = request.request;
    none.service = request.service;
    none.status = listener == nullptr ? kNoSuchService : kNoQueuePair;
    return core_.answer(arrival, none);
  }
  connection->phase = Phase::kSidrReqReceived;
  connection->role = Role::kResponder;
  connection->remote = arrival.from;
  connection->remote_id = request.request;
  connection->transaction = arrival.mad.transaction;
  core_.entries.index_request(*connection);
  core_.await_decision(*connection, *listener, arrival.now);
  core_.events.add(*connection, EventKind::kResolve, &arrival);
  core_.displace(*listener);
}

void Resolution::on_reply(const CmArrival& arrival, const wire::CmSidrRep& reply) {
  CmConnection* connection = core_.answered(arrival, reply.request, 0);
  if (connection == nullptr || connection->phase != Phase::kSidrReqSent) return;
  core_.events.add(*connection, EventKind::kResolved, &arrival);
  core_.forget(*connection);
}

}  // namespace weft::cm
