// SPDX-License-Identifier: BSD-2-Clause
// How does a listener accept a connection? (IBTA 12.9.7.2)
#include "passive_side.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>
#include <utility>

namespace weft::cm {
namespace {

// Transport service types of a REQ (IBTA 12.7.6): 3 means that the extended type says it.
constexpr std::uint8_t kExtendedTransport = 3;
constexpr std::uint8_t kXrc = 1;

constexpr std::uint8_t kReliableDatagram = 2;

// What the peer has once for each connection: of reliable datagrams all have the same queue pair.
std::uint32_t end_of(const wire::CmReq& req) {
  return req.transport == kReliableDatagram ? req.eecn : req.qpn;
}

bool is_xrc(const wire::CmReq& req) { return req.transport == kExtendedTransport; }

bool has_known_transport(const wire::CmReq& req) {
  return !is_xrc(req) || req.extended_transport == kXrc;
}

}  // namespace

Result<ListenerId> PassiveSide::listen(std::uint64_t service, std::size_t backlog, User& user,
                                       void* context) {
  ServiceListener* listener = core_.listeners.add(service);
  if (listener == nullptr) {
    return Error{EADDRINUSE, "service " + std::to_string(service) + " has a listener"};
  }
  listener->backlog = std::max<std::size_t>(backlog, 1);
  listener->user = &user;
  listener->context = context;
  return listener->id;
}

void PassiveSide::set_backlog(ListenerId id, std::size_t backlog) {
  ServiceListener* listener = core_.listeners.find(id);
  if (listener == nullptr) return;
  listener->backlog = std::max<std::size_t>(backlog, 1);
  core_.displace(*listener);
}

void PassiveSide::stop(ListenerId id, Time now) {
  ServiceListener* listener = core_.listeners.find(id);
  if (listener == nullptr) return;
  for (const AgeList& half_open : listener->half_open.lists) {
    while (half_open.size() != 0) end_half_open(*core_.entries.find(half_open.oldest()), now);
  }
  core_.events.drop_of_listener(id);
  core_.listeners.remove(*listener);
}

// Its listener has stopped.
void PassiveSide::end_half_open(CmConnection& connection, Time now) {
  if (connection.phase == Phase::kReqReceived) {
    core_.refuse(connection,
                 rejection(kAnswersReq, wire::CmReason::kInvalidService, core_.options.guid), {},
                 now);
  } else if (connection.phase == Phase::kSidrReqReceived) {
    wire::CmSidrRep none;
    none.status = kNoSuchService;
    core_.answer_query(connection, none, now);
  } else {
    connection.place.leave();  // accepted: its deadline ends it
  }
}

CmConnection* PassiveSide::undecided(ConnectionId id) {
  CmConnection* connection = core_.entries.find(id);
  const bool is = connection != nullptr && connection->phase == Phase::kReqReceived;
  return is ? connection : nullptr;
}

Status PassiveSide::claim(ConnectionId id, User& user, void* context) {
  CmConnection* connection = core_.entries.find(id);
  const bool is_undecided = connection != nullptr && (connection->phase == Phase::kReqReceived ||
                                                      connection->phase == Phase::kSidrReqReceived);
  if (!is_undecided) return no_connection(id);
  connection->user = &user;
  connection->context = context;
  connection->listener = 0;
  connection->place.leave();
  return {};
}

Status PassiveSide::accept(ConnectionId id, const AcceptRequest& reply, User& user, void* context,
                           Time now) {
  CmConnection* connection = undecided(id);
  if (connection == nullptr) return no_connection(id);
  if (Status fits = check_length(reply.more, kMaxMorePrivateData); !fits) return fits;
  connection->phase = Phase::kRepSent;
  connection->watched = reply.watched;
  connection->own_qpn = queue_pair_of(reply.rep);
  connection->user = &user;
  connection->context = context;
  connection->listener = 0;
  wire::CmRep rep = reply.rep;
  rep.local_id = id;
  rep.remote_id = connection->remote_id;
  rep.ca_guid = core_.options.guid;
  // A REQ, which may be forged, draws no more packets when MRAs came first. During a flood the REP
  // is repeated for a repeated REQ only, which does not reach an acceptor that has adopted it.
  const bool repeats = connection->adopted || !core_.requests.is_short();
  const unsigned drawn =
      std::min(connection->delays + (reply.delayed ? 1U : 0U), core_.options.most_replies);
  const unsigned repetitions = repeats ? core_.options.most_replies - drawn : 0;
  core_.start(*connection, compose(connection->transaction, rep, reply.more),
              core_.times_of(*connection).replies, repetitions, now);
  connection->task->lender = reply.credits;
  return {};
}

Status PassiveSide::delay(ConnectionId id, std::uint8_t timeout, Time now) {
  constexpr std::uint8_t kMaxCode = 31;
  CmConnection* connection = undecided(id);
  if (connection == nullptr) return no_connection(id);
  if (timeout > kMaxCode) return Error{EINVAL, "a service timeout has 5 bits"};
  connection->mra_timeout = timeout;
  if (connection->delays == core_.options.most_replies) return {};
  ++connection->delays;
  acknowledge(*connection, now);
  return {};
}

Status PassiveSide::forward(ConnectionId id, Time now) {
  CmConnection* connection = undecided(id);
  if (connection == nullptr) return no_connection(id);
  connection->forwarded = true;
  // The acceptor gives one credit back.
  if (connection->credits > 1) give_back(*connection, connection->credits - 1U);
  core_.retire(*connection, {}, now);
  rest_forwarded(*connection, now);
  return {};
}

// As long as its REQ may be repeated, which would be a new request for a listener without the
// entry.
void PassiveSide::rest_forwarded(CmConnection& connection, Time now) {
  core_.wait(connection, after(now, core_.times_of(connection).undecided_limit));
}

// Its REQ has come once to this host: waiting for the answers of other instances would lose it.
Result<ConnectionId> PassiveSide::adopt(const CmArrival& arrival, User& user, void* context) {
  const auto* const found = std::get_if<wire::CmReq>(&arrival.mad.message);
  if (found == nullptr || found->local_id == 0) return Error{EINVAL, "no REQ with an id"};
  const wire::CmReq& req = *found;
  const CmConnection* known =
      core_.entries.find_request(arrival.from, req.local_id, arrival.mad.transaction);
  if (known == nullptr) known = twin_of(arrival, req);
  if (known != nullptr) {
    liveness_.suspect(*known, arrival.now);
    return Error{EALREADY, "connection " + std::to_string(known->id) + " has that peer"};
  }
  liveness_.suspect_others(arrival.from, req.ca_guid, arrival.now);
  CmConnection* connection = add(arrival, req);
  if (connection == nullptr) return no_free_id();
  connection->adopted = true;
  connection->user = &user;
  connection->context = context;
  core_.wait(*connection, after(arrival.now, core_.times_of(*connection).undecided_limit));
  return connection->id;
}

void PassiveSide::established(ConnectionId id, Time now) {
  CmConnection* connection = core_.entries.find(id);
  if (connection == nullptr || connection->phase != Phase::kRepSent) return;
  establish(*connection, nullptr, now);
}

void PassiveSide::on_req(const CmArrival& arrival, const wire::CmReq& req) {
  if (req.local_id == 0) return core_.stats.add(Stat::kInvalidMessages);
  CmConnection* known =
      core_.entries.find_request(arrival.from, req.local_id, arrival.mad.transaction);
  if (known != nullptr) return on_repeated_req(*known, arrival.now);
  // The REQ will be repeated; by then the old peer has answered, or is gone.
  if (liveness_.suspect_others(arrival.from, req.ca_guid, arrival.now)) return;
  if (CmConnection* twin = twin_of(arrival, req)) return on_twin(*twin, arrival, req);
  ServiceListener* listener = core_.listeners.of_service(req.service);
  if (listener == nullptr) return answer(arrival, req, wire::CmReason::kInvalidService);
  if (!has_known_transport(req)) return answer(arrival, req, wire::CmReason::kInvalidTransport);
  open(*listener, arrival, req);
}

// A connection that lives, of the same communication id or end.
CmConnection* PassiveSide::twin_of(const CmArrival& arrival, const wire::CmReq& req) {
  CmConnection* same_id = core_.entries.find_same_id(arrival.from, req.local_id, req.ca_guid);
  if (same_id != nullptr) return same_id;
  return core_.entries.find_same_end(arrival.from, req.ca_guid, end_of(req));
}

// The peer asks anew with numbers of a connection that this side has: it has lost that one, or the
// REQ is forged. The old one decides.
void PassiveSide::on_twin(CmConnection& twin, const CmArrival& arrival, const wire::CmReq& req) {
  if (twin.phase == Phase::kReqReceived) return;
  if (twin.phase == Phase::kRepSent) return core_.repeat(twin);  // a REJ answers it
  if (twin.watched) return liveness_.suspect(twin, arrival.now);
  const bool same_id = twin.remote_id == req.local_id;
  answer(arrival, req, same_id ? wire::CmReason::kDuplicateId : wire::CmReason::kStale);
}

// A REQ draws a REP and its few repetitions by timer; beyond that only another REQ draws one. A REQ
// within the host is not repeated, so that its requester needs no MRA.
void PassiveSide::on_repeated_req(CmConnection& connection, Time now) {
  switch (connection.phase) {
    case Phase::kReqReceived:
      if (connection.remote.carrier == Carrier::kMailbox) return;
      count_credit(connection);
      return acknowledge(connection, now);
    case Phase::kRepSent:
      count_credit(connection);
      return core_.repeat(connection);
    case Phase::kEstablished:  // only its requester knows the transaction id
      give_back(connection, 1);
      return core_.repeat(connection);
    case Phase::kTimeWait:
      if (connection.forwarded) {
        give_back(connection, 1);
        return rest_forwarded(connection, now);
      }
      return reject_again(connection, now);
    case Phase::kReqSent:
    case Phase::kRepReceived:
    case Phase::kDreqSent:
    case Phase::kSidrReqSent:
    case Phase::kSidrReqReceived:
      return;
  }
}

// The REQ may be forged: its REJ counts as an answer that no state stands behind.
void PassiveSide::reject_again(const CmConnection& connection, Time now) {
  if (!core_.may_answer(connection.remote, now)) return;
  if (connection.task != nullptr && !connection.task->kept.empty()) {
    return core_.repeat(connection);
  }
  wire::CmRej rej = rejection(kAnswersReq, wire::CmReason::kStale, core_.options.guid);
  rej.remote_id = connection.remote_id;
  core_.send_once(connection, rej);
}

void PassiveSide::open(ServiceListener& listener, const CmArrival& arrival,
                       const wire::CmReq& req) {
  CmConnection* connection = add(arrival, req);
  if (connection == nullptr) return answer(arrival, req, wire::CmReason::kNoResources);
  count_credit(*connection);
  core_.await_decision(*connection, listener, arrival.now);
  core_.events.add(*connection, EventKind::kRequest, &arrival);
  core_.displace(listener);
}

// Null when no communication id is free.
CmConnection* PassiveSide::add(const CmArrival& arrival, const wire::CmReq& req) {
  CmConnection* connection = core_.entries.add();
  if (connection == nullptr) return nullptr;
  connection->phase = Phase::kReqReceived;
  connection->remote = arrival.from;
  connection->remote_id = req.local_id;
  connection->transaction = arrival.mad.transaction;
  connection->remote_guid = req.ca_guid;
  connection->remote_qpn = req.qpn;
  connection->remote_end = end_of(req);
  connection->mra_timeout = kDecisionTime;
  core_.entries.index_request(*connection);
  return connection;
}

// The requester then asks again later, and knows that the listener lives.
void PassiveSide::acknowledge(CmConnection& connection, Time now) {
  core_.ask_for_time(connection, kAnswersReq, connection.mra_timeout);
  const Time limit = after(now, core_.times_of(connection).undecided_limit);
  core_.wait(connection, after(limit, service_time(connection.mra_timeout)));
}

void PassiveSide::answer(const CmArrival& arrival, const wire::CmReq& req, wire::CmReason reason) {
  core_.answer(arrival, kAnswersReq, reason, req.local_id);
}

void PassiveSide::on_rtu(const CmArrival& arrival, const wire::CmRtu& rtu) {
  CmConnection* connection = core_.answered(arrival, rtu.remote_id, rtu.local_id);
  if (connection == nullptr) {
    if (core_.entries.find(rtu.remote_id) != nullptr) return;
    // This attempt has ended, but its requester takes it for established.
    return core_.answer(arrival, kAnswersOther, wire::CmReason::kInvalidId, rtu.local_id);
  }
  const bool is_its = rtu.local_id == connection->remote_id;
  if (connection->role != Role::kAcceptor || !is_its) {
    return core_.stats.add(Stat::kInvalidMessages);
  }
  if (connection->phase == Phase::kRepSent) return establish(*connection, &arrival, arrival.now);
  if (connection->phase == Phase::kEstablished) core_.drop_task(*connection);
  if (connection->phase == Phase::kTimeWait) core_.repeat(*connection);
}

// Of the REQ that has arrived: it comes back when the connection is established.
void PassiveSide::count_credit(CmConnection& connection) {
  if (connection.credits != std::numeric_limits<std::uint8_t>::max()) ++connection.credits;
}

// REQs within the host have taken none.
void PassiveSide::give_back(const CmConnection& connection, unsigned credits) {
  if (connection.remote.carrier == Carrier::kPackets) core_.requests.give_back(credits);
}

void PassiveSide::establish(CmConnection& connection, const CmArrival* arrival, Time now) {
  give_back(connection, std::exchange(connection.credits, 0));
  if (auto lender = std::move(connection.task->lender)) lender->give_back();
  core_.settle(connection);
  if (arrival == nullptr) {  // the requester may still need the REP
    core_.wait(connection, after(now, core_.times_of(connection).replies.limit));
  } else {
    core_.drop_task(connection);
  }
  liveness_.watch(connection, now);
  core_.events.add(connection, EventKind::kEstablished, arrival);
}

}  // namespace weft::cm
