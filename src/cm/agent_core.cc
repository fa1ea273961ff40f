// SPDX-License-Identifier: BSD-2-Clause
// What do the two sides of a connection, its end and its listeners share?
#include "agent_core.h"

#include <string>
#include <utility>

namespace weft::cm {
namespace {

// So many failed attempts are remembered: 0.5 MB.
constexpr std::size_t kMostRetired = 1024;

}  // namespace

Core::Core(CmHost& its_host, const AgentOptions& its_options, Stats& its_stats)
    : host(its_host),
      options(its_options),
      stats(its_stats),
      peers(its_host.random()),
      entries(its_options.port, its_host.random()),
      limiter(its_options.answers, its_host.random()) {}

void Core::start(CmConnection& connection, std::vector<std::byte> message, const RepeatTimes& times,
                 unsigned repetitions, Time now) {
  connection.kept = std::move(message);
  connection.timer.start(times, repetitions, now);
  arm(connection);
  repeat(connection);
}

void Core::repeat(const CmConnection& connection) {
  if (!connection.kept.empty()) host.send(connection.remote, connection.kept);
}

void Core::tell(const CmConnection& connection, const wire::CmMessage& message) {
  host.send(connection.remote, compose(connection.transaction, message));
}

void Core::answer(const CmArrival& arrival, const wire::CmMessage& message) {
  if (!limiter.take(arrival.from.address, arrival.now)) return;
  host.send(arrival.from, compose(arrival.mad.transaction, message));
}

void Core::arm(CmConnection& connection) {
  deadlines.move(connection.id, connection.due, connection.timer.due());
}

CmConnection* Core::answered(const CmArrival& arrival, ConnectionId id, std::uint32_t remote_id) {
  CmConnection* connection = from_its_source(arrival, id);
  if (connection == nullptr) return nullptr;
  const bool named = connection->remote_id != 0 && remote_id != 0;
  if (named && connection->remote_id != remote_id) return nullptr;
  if (connection->transaction == arrival.mad.transaction) return connection;
  stats.add(Stat::kInvalidMessages);
  return nullptr;
}

CmConnection* Core::between(const CmArrival& arrival, ConnectionId id, std::uint32_t remote_id) {
  CmConnection* connection = from_its_source(arrival, id);
  return connection != nullptr && connection->remote_id == remote_id ? connection : nullptr;
}

CmConnection* Core::from_its_source(const CmArrival& arrival, ConnectionId id) {
  CmConnection* connection = entries.find(id);
  if (connection == nullptr || connection->remote == arrival.from) return connection;
  stats.add(Stat::kInvalidMessages);
  return nullptr;
}

void Core::end(const CmConnection& connection, EventKind kind, const CmArrival* arrival) {
  if (connection.phase == Phase::kReqReceived && events.drop_request(connection.id)) return;
  events.add(connection, kind, arrival);
}

void Core::settle(CmConnection& connection) {
  connection.phase = Phase::kEstablished;
  connection.place.leave();
  connection.timer.wait(Time::max());
  arm(connection);
}

void Core::rest(CmConnection& connection, Time now) {
  connection.phase = Phase::kTimeWait;
  connection.user = nullptr;
  connection.kept = {};
  connection.place.leave();
  connection.timer.wait(now + options.time_wait);
  arm(connection);
}

void Core::retire(CmConnection& connection, std::vector<std::byte> kept, Time now) {
  rest(connection, now);
  connection.kept = std::move(kept);
  connection.timer.wait(now + std::max(options.time_wait, options.replies.limit));
  arm(connection);
  connection.place.enter(refused, connection.id);
  if (refused.size() > kMostRetired) forget(*entries.find(refused.oldest()));
}

void Core::refuse(CmConnection& connection, wire::CmRej rej, std::span<const std::byte> data,
                  Time now) {
  if (connection.phase != Phase::kReqReceived) rej.local_id = connection.id;
  rej.remote_id = connection.remote_id;
  const std::span<const std::byte> more = put_data(rej.data, data);
  retire(connection, compose(connection.transaction, rej, more), now);
  repeat(connection);
}

void Core::forget(CmConnection& connection) {
  deadlines.move(connection.id, connection.due, Time::max());
  entries.remove(connection);
}

Error no_connection(ConnectionId id) {
  return {ENOENT, "connection " + std::to_string(id) + " has ended"};
}

Status check_length(std::span<const std::byte> data, std::size_t limit) {
  if (data.size() <= limit) return {};
  return Error{EINVAL, std::to_string(data.size()) + " bytes of private data, the limit is " +
                           std::to_string(limit)};
}

}  // namespace weft::cm
