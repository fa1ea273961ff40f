// SPDX-License-Identifier: BSD-2-Clause
// What do the two sides of a connection, its end and its listeners share?
#include "agent_core.h"

#include <string>
#include <utility>

namespace weft::cm {
namespace {

// So many failed attempts are remembered: 0.5 MB.
constexpr std::size_t kMostRetired = 1024;

// It was asked at another port, and nothing has answered. An attempt that was given up so still
// rejects the REP of an acceptor that it has not heard of.
bool is_of_asked_host(const CmConnection& connection, const Remote& from) {
  const bool asks = connection.role == Role::kRequester || connection.role == Role::kInquirer;
  return asks && connection.remote_id == 0 && connection.remote.is_of_same_host(from);
}

}  // namespace

Core::Core(CmHost& its_host, const AgentOptions& its_options, Stats& its_stats)
    : host(its_host),
      options(its_options),
      stats(its_stats),
      peers(its_host.random()),
      entries(its_options.port, its_host.random()),
      limiter(its_options.answers),
      source_seed(its_host.random()),
      requests(its_options.requests, source_seed) {}

void Core::start(CmConnection& connection, std::vector<std::byte> message, const RepeatTimes& times,
                 unsigned repetitions, Time now) {
  Task& task = task_of(connection);
  task.kept = std::move(message);
  task.timer.start(times, repetitions, now);
  arm(connection);
  repeat(connection);
}

Task& Core::task_of(CmConnection& connection) {
  if (connection.task == nullptr) connection.task = std::make_unique<Task>();
  return *connection.task;
}

void Core::wait(CmConnection& connection, Time until) {
  task_of(connection).timer.wait(until);
  arm(connection);
}

void Core::drop_task(CmConnection& connection) {
  if (connection.task == nullptr) return;
  deadlines.move(connection.id, connection.task->due, Time::max());
  connection.task.reset();
}

// A host limits its ICMP errors, to one a second in the end. The first of two messages gets it: not
// that to a place which was reported before.
void Core::send(const CmConnection& connection, std::span<const std::byte> message) {
  const UnansweredReq* const req =
      connection.task != nullptr ? connection.task->unanswered.get() : nullptr;
  const bool asks_other = req != nullptr && req->asks_other;
  const bool other_first = asks_other && req->is_unreachable;
  if (other_first) host.send(*req->other, connection.id, message);
  host.send(connection.remote, connection.id, message);
  if (asks_other && !other_first) host.send(*req->other, connection.id, message);
}

void Core::repeat(const CmConnection& connection) {
  if (connection.task == nullptr || connection.task->kept.empty()) return;
  send(connection, connection.task->kept);
}

void Core::send_once(const CmConnection& connection, const wire::CmMessage& message) {
  send(connection, compose(connection.transaction, message));
}

bool Core::may_answer(const Remote& to, Time now) {
  if (to.carrier == Carrier::kMailbox) return true;
  if (limiter.take(hash_of(to.address, source_seed), now)) return true;
  stats.add(Stat::kAnswersLimited);
  return false;
}

void Core::answer(const CmArrival& arrival, const wire::CmMessage& message) {
  if (!may_answer(arrival.from, arrival.now)) return;
  host.send(arrival.from, 0, compose(arrival.mad.transaction, message));
}

void Core::answer(const CmArrival& arrival, std::uint8_t message, wire::CmReason reason,
                  std::uint32_t remote_id) {
  wire::CmRej rej = rejection(message, reason, options.guid);
  rej.remote_id = remote_id;
  answer(arrival, rej);
}

void Core::ask_for_time(const CmConnection& connection, std::uint8_t message,
                        std::uint8_t timeout) {
  wire::CmMra mra;
  mra.local_id = connection.id;
  mra.remote_id = connection.remote_id;
  mra.message = message;
  mra.service_timeout = timeout;
  send_once(connection, mra);
}

const AnswerTimes& Core::times_of(const CmConnection& connection) const {
  const bool within_host = connection.remote.carrier == Carrier::kMailbox;
  return within_host ? options.mailbox : options.packets;
}

void Core::arm(CmConnection& connection) {
  Task& task = *connection.task;
  deadlines.move(connection.id, task.due, task.next_due());
  if (task.due == Time::max() && task.kept.empty()) connection.task.reset();
}

CmConnection* Core::answered(const CmArrival& arrival, ConnectionId id, std::uint32_t remote_id) {
  CmConnection* connection = entries.find(id);
  if (connection == nullptr) return nullptr;
  const bool named = connection->remote_id != 0 && remote_id != 0;
  if (named && connection->remote_id != remote_id) return nullptr;
  const bool is_its =
      connection->remote == arrival.from || is_of_asked_host(*connection, arrival.from);
  if (is_its && connection->transaction == arrival.mad.transaction) {
    connection->remote = arrival.from;
    return connection;
  }
  stats.add(Stat::kInvalidMessages);
  return nullptr;
}

CmConnection* Core::between(const CmArrival& arrival, ConnectionId id, std::uint32_t remote_id) {
  CmConnection* connection = entries.find(id);
  if (connection == nullptr || connection->remote_id != remote_id) return nullptr;
  if (connection->remote == arrival.from) return connection;
  stats.add(Stat::kInvalidMessages);
  return nullptr;
}

void Core::end(const CmConnection& connection, EventKind kind, const CmArrival* arrival) {
  const bool undecided =
      connection.phase == Phase::kReqReceived || connection.phase == Phase::kSidrReqReceived;
  if (undecided && events.drop_request(connection.id)) return;
  events.add(connection, kind, arrival);
}

void Core::settle(CmConnection& connection) {
  connection.phase = Phase::kEstablished;
  connection.place.leave();
  wait(connection, Time::max());
}

void Core::rest(CmConnection& connection, Time now) {
  connection.phase = Phase::kTimeWait;
  connection.user = nullptr;
  connection.place.leave();
  task_of(connection).kept.clear();
  task_of(connection).unanswered.reset();
  wait(connection, after(now, options.time_wait));
}

void Core::retire(CmConnection& connection, std::vector<std::byte> kept, Time now) {
  rest(connection, now);
  task_of(connection).kept = std::move(kept);
  wait(connection, after(now, std::max(options.time_wait, times_of(connection).replies.limit)));
  AgeList& list = refused.of(connection.remote);
  connection.place.enter(list, connection.id);
  if (list.size() > kMostRetired) forget(*entries.find(list.oldest()));
}

void Core::refuse(CmConnection& connection, wire::CmRej rej, std::span<const std::byte> data,
                  Time now, bool is_sent) {
  if (connection.phase != Phase::kReqReceived) rej.local_id = connection.id;
  rej.remote_id = connection.remote_id;
  const std::span<const std::byte> more = put_data(rej.data, data);
  std::vector<std::byte> message = compose(connection.transaction, rej, more);
  if (is_sent) send(connection, message);
  retire(connection, std::move(message), now);
}

void Core::answer_query(CmConnection& connection, wire::CmSidrRep reply, Time now) {
  reply.request = connection.remote_id;
  if (const auto* listener = listeners.find(connection.listener)) reply.service = listener->service;
  retire(connection, compose(connection.transaction, reply), now);
  repeat(connection);
}

void Core::forget(CmConnection& connection) {
  drop_task(connection);
  entries.remove(connection);
}

void Core::await_decision(CmConnection& connection, ServiceListener& listener, Time now) {
  connection.user = listener.user;
  connection.context = listener.context;
  connection.listener = listener.id;
  wait(connection, after(now, times_of(connection).undecided_limit));
  connection.place.enter(listener.half_open.of(connection.remote), connection.id);
}

// Without a REJ: they may be forged, and a peer that lives repeats its REQ.
void Core::displace(ServiceListener& listener) {
  for (const AgeList& half_open : listener.half_open.lists) {
    while (half_open.size() > listener.backlog) {
      CmConnection& oldest = *entries.find(half_open.oldest());
      stats.add(Stat::kRequestsDisplaced);
      end(oldest, EventKind::kOverrun);
      forget(oldest);
    }
  }
}

Error no_free_id() { return {EUSERS, "65535 connections: no communication id is free"}; }

Error no_connection(ConnectionId id) {
  return {ENOENT, "connection " + std::to_string(id) + " has ended"};
}

Status check_length(std::span<const std::byte> data, std::size_t limit) {
  if (data.size() <= limit) return {};
  return Error{EINVAL, std::to_string(data.size()) + " bytes of private data, the limit is " +
                           std::to_string(limit)};
}

}  // namespace weft::cm
