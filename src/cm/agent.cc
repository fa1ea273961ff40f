// SPDX-License-Identifier: BSD-2-Clause
// How are connections made and ended by InfiniBand's communication management (IBTA chapter 12)?
#include "cm/agent.h"

#include <algorithm>

#include "active_side.h"
#include "agent_core.h"
#include "endings.h"
#include "passive_side.h"
#include "resolution.h"

namespace weft::cm {
namespace {

std::optional<wire::CmMad> parse(std::span<const std::byte> message) {
  const bool fits =
      message.size() >= wire::kMadBytes && message.size() <= wire::kMadBytes + kMaxMorePrivateData;
  return fits ? wire::parse_cm(message.first(wire::kMadBytes)) : std::nullopt;
}

}  // namespace

struct Agent::State {
  State(CmHost& host, const AgentOptions& options, Stats& stats) : core(host, options, stats) {}

  void take(const CmArrival& arrival) {
    std::visit([&](const auto& message) { on(arrival, message); }, arrival.mad.message);
  }
  // To which part each message belongs.
  void on(const CmArrival& arrival, const wire::CmReq& req) { passive.on_req(arrival, req); }
  void on(const CmArrival& arrival, const wire::CmRep& rep) { active.on_rep(arrival, rep); }
  void on(const CmArrival& arrival, const wire::CmRtu& rtu) { passive.on_rtu(arrival, rtu); }
  void on(const CmArrival& arrival, const wire::CmRej& rej) { endings.on_rej(arrival, rej); }
  void on(const CmArrival& arrival, const wire::CmDreq& dreq) { endings.on_dreq(arrival, dreq); }
  void on(const CmArrival& arrival, const wire::CmDrep& drep) { endings.on_drep(arrival, drep); }
  void on(const CmArrival& arrival, const wire::CmMra& mra);
  void on(const CmArrival& arrival, const wire::CmSidrReq& req) {
    resolution.on_request(arrival, req);
  }
  void on(const CmArrival& arrival, const wire::CmSidrRep& rep) {
    resolution.on_reply(arrival, rep);
  }
  void on(const CmArrival& arrival, const wire::CmLap& lap) { liveness.on_lap(arrival, lap); }
  void on(const CmArrival& arrival, const wire::CmApr& apr) { liveness.on_apr(arrival, apr); }

  Core core;
  Liveness liveness{core};
  ActiveSide active{core, liveness};
  PassiveSide passive{core, liveness};
  Endings endings{core, liveness};
  Resolution resolution{core};
};

// The peer asks for patience with its REQ or REP.
void Agent::State::on(const CmArrival& arrival, const wire::CmMra& mra) {
  CmConnection* connection = core.answered(arrival, mra.remote_id, mra.local_id);
  if (connection == nullptr) return;
  const bool meant = (connection->phase == Phase::kReqSent && mra.message == kAnswersReq) ||
                     (connection->phase == Phase::kRepSent && mra.message == kAnswersRep);
  const bool is_its = connection->remote_id == 0 || connection->remote_id == mra.local_id;
  if (!meant || !is_its) return;
  Task& task = *connection->task;
  task.timer.postpone(service_time(mra.service_timeout), arrival.now);
  if (task.unanswered != nullptr && task.unanswered->ends_unreachable) {
    task.unanswered->wait_for_listener(task.timer.next);
  } else if (task.unanswered != nullptr) {
    connection->place.leave();
    task.unanswered.reset();
  }
  core.arm(*connection);
}

Agent::Agent(CmHost& host, const AgentOptions& options, Stats& stats)
    : state_(std::make_unique<State>(host, options, stats)) {}

Agent::~Agent() = default;

// A REQ that is held back costs neither a look at its contents nor an entry.
bool Agent::take(const Remote& from, std::span<const std::byte> message, Time now) {
  const auto request = wire::transaction_of_request(message);
  if (request && !state_->core.requests.take(from, *request, now)) {
    state_->core.stats.add(Stat::kRequestsHeldBack);
    return true;
  }
  const auto mad = parse(message);
  state_->core.stats.add(mad ? Stat::kConnectionMessages : Stat::kMalformedPackets);
  if (mad) state_->take({from, *mad, message.subspan(wire::kMadBytes), now});
  return mad.has_value();
}

void Agent::take(const Remote& from, const wire::CmMad& mad, std::span<const std::byte> more,
                 Time now) {
  state_->core.stats.add(Stat::kConnectionMessages);
  state_->take({from, mad, more, now});
}

void Agent::advance(Time now) {
  Core& core = state_->core;
  while (core.deadlines.due() <= now) {
    state_->endings.on_timer(*core.entries.find(core.deadlines.next()), now);
  }
  state_->liveness.advance(now);
}

Time Agent::due() const { return std::min(state_->core.deadlines.due(), state_->liveness.due()); }

void Agent::deliver(std::optional<Carrier> carrier) { state_->core.events.deliver(carrier); }

bool Agent::has_events(std::optional<Carrier> carrier) const {
  return state_->core.events.has_any(carrier);
}

Result<ListenerId> Agent::listen(std::uint64_t service, std::size_t backlog, User& user,
                                 void* context) {
  return state_->passive.listen(service, backlog, user, context);
}

void Agent::set_backlog(ListenerId listener, std::size_t backlog) {
  state_->passive.set_backlog(listener, backlog);
}

void Agent::stop(ListenerId listener, Time now) { state_->passive.stop(listener, now); }

Status Agent::claim(ConnectionId id, User& user, void* context) {
  return state_->passive.claim(id, user, context);
}

Result<ConnectionId> Agent::connect(const ConnectRequest& request, User& user, void* context,
                                    Time now) {
  return state_->active.connect(request, user, context, now);
}

Status Agent::accept(ConnectionId id, const AcceptRequest& reply, User& user, void* context,
                     Time now) {
  return state_->passive.accept(id, reply, user, context, now);
}

Status Agent::reject(ConnectionId id, wire::CmReason reason, std::span<const std::byte> data,
                     Time now) {
  return state_->endings.reject(id, reason, data, now);
}

Status Agent::refuse(ConnectionId id, wire::CmReason reason, std::span<const std::byte> data,
                     Time now) {
  return state_->endings.refuse(id, reason, data, now);
}

void Agent::reject_unknown(const Remote& peer, Time now) {
  Core& core = state_->core;
  if (!core.may_answer(peer, now)) return;
  core.host.send(peer, 0,
                 compose(0, rejection(kAnswersOther, wire::CmReason::kStale, core.options.guid)));
}

Status Agent::delay(ConnectionId id, std::uint8_t timeout, Time now) {
  return state_->passive.delay(id, timeout, now);
}

bool Agent::is_undecided(ConnectionId id) const { return state_->passive.undecided(id) != nullptr; }

Status Agent::forward(ConnectionId id, Time now) { return state_->passive.forward(id, now); }

Result<ConnectionId> Agent::adopt(const Remote& from, const wire::CmMad& request, User& user,
                                  void* context, Time now) {
  return state_->passive.adopt({from, request, {}, now}, user, context);
}

Status Agent::confirm(ConnectionId id, std::span<const std::byte> data, Time now) {
  return state_->active.confirm(id, data, now);
}

void Agent::established(ConnectionId id, Time now) { state_->passive.established(id, now); }

void Agent::disconnect(ConnectionId id, std::span<const std::byte> data, Time now) {
  state_->endings.disconnect(id, data, now);
}

Result<ConnectionId> Agent::resolve(const ResolveRequest& request, User& user, void* context,
                                    Time now) {
  return state_->resolution.resolve(request, user, context, now);
}

Status Agent::answer(ConnectionId id, const wire::CmSidrRep& reply, Time now) {
  return state_->resolution.answer(id, reply, now);
}

void Agent::probe(ConnectionId id, Time now) {
  const CmConnection* connection = state_->core.entries.find(id);
  if (connection != nullptr) state_->liveness.check(*connection, now);
}

std::shared_ptr<RequestCredits> Agent::credits() const { return state_->core.requests.returned(); }

Time Agent::last_received(ConnectionId id) const {
  const CmConnection* connection = state_->core.entries.find(id);
  return connection == nullptr ? Time{} : state_->liveness.last_received(*connection);
}

void Agent::abandon(ConnectionId id, Time now) { state_->endings.abandon(id, now); }

void Agent::unreachable(const Remote& peer, Time now) {
  state_->liveness.suspect_all(peer, now);
  state_->endings.on_unreachable(peer, now);
}

std::uint64_t Agent::guid() const { return state_->core.options.guid; }

std::size_t Agent::connections() const {
  return state_->core.entries.count(
      [](const CmConnection& each) { return each.phase != Phase::kTimeWait; });
}

std::size_t Agent::entries() const { return state_->core.entries.size(); }

}  // namespace weft::cm
