// SPDX-License-Identifier: BSD-2-Clause
// What is to be reported?
#include "reports.h"

#include <algorithm>
#include <utility>

namespace weft::cm {
namespace {

auto is_of(std::optional<Carrier> carrier) {
  return [carrier](const auto& each) { return !carrier || each.event.remote.carrier == *carrier; };
}

}  // namespace

void Reports::add(const CmConnection& connection, EventKind kind, const CmArrival* arrival) {
  if (connection.user == nullptr) return;
  QueuedReport pending{connection.user, {}, nullptr};
  pending.event.kind = kind;
  pending.event.id = connection.id;
  pending.event.listener = connection.listener;
  pending.event.context = connection.context;
  pending.event.remote = connection.remote;
  if (arrival != nullptr) {
    pending.content = std::make_unique<EventMessage>(
        EventMessage{arrival->mad, {arrival->more.begin(), arrival->more.end()}});
    pending.event.mad = &pending.content->mad;
    pending.event.more = pending.content->more;
  }
  queue_.push_back(std::move(pending));
}

bool Reports::drop_request(ConnectionId id) {
  const auto at = std::find_if(queue_.begin(), queue_.end(),
                               [&](const QueuedReport& each) { return each.event.id == id; });
  if (at == queue_.end()) return false;
  queue_.erase(at);
  return true;
}

void Reports::drop(ConnectionId id) {
  std::erase_if(queue_, [&](const QueuedReport& each) { return each.event.id == id; });
}

void Reports::drop_of_listener(ListenerId listener) {
  std::erase_if(queue_, [&](const QueuedReport& each) { return each.event.listener == listener; });
}

void Reports::deliver(std::optional<Carrier> carrier) {
  const auto next = [&] { return std::find_if(queue_.begin(), queue_.end(), is_of(carrier)); };
  for (auto at = next(); at != queue_.end(); at = next()) {
    const QueuedReport pending = std::move(*at);
    queue_.erase(at);
    pending.user->handle(pending.event);
  }
}

bool Reports::has_any(std::optional<Carrier> carrier) const {
  return std::any_of(queue_.begin(), queue_.end(), is_of(carrier));
}

}  // namespace weft::cm
