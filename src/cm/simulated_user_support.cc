// SPDX-License-Identifier: BSD-2-Clause
// What does a user of a simulation call, and which events does it take?
#include "simulated_user.h"

namespace weft::cm::testing {
namespace {

using State = End::State;
using enum EventKind;

constexpr std::size_t kReqData = 92;
constexpr std::size_t kRepData = 196;
constexpr std::size_t kRtuData = 224;
constexpr std::size_t kDreqData = 220;
constexpr std::size_t kRejData = 148;

template <std::size_t kBytes>
void put_letter(wire::PrivateData<kBytes>& data, std::vector<std::byte>* more, const End& end,
                Letter letter) {
  const std::size_t behind = more != nullptr ? more_bytes(end.number, letter) : 0;
  const Bytes all = write_letter(end.number, letter, kBytes + behind);
  std::copy_n(all.begin(), kBytes, data.begin());
  if (more != nullptr) more->assign(all.begin() + kBytes, all.end());
}

template <class Message>
const Message* message_of(const CmEvent& event) {
  return event.mad != nullptr ? std::get_if<Message>(&event.mad->message) : nullptr;
}

bool is_zero(std::span<const std::byte> data) {
  return std::all_of(data.begin(), data.end(), [](std::byte byte) { return byte == std::byte{}; });
}

}  // namespace

void SimulatedUser::handle(const CmEvent& event) {
  End* const end = process_.find(event.id);
  if (event.kind == kRequest || event.kind == kResolve) {
    check(end == nullptr, "a request has an id that is in use");
    check(listeners_.count(event.listener) == 1, "a request for no listener");
    check(event.context == this, "a request without the context of its listener");
    if (end != nullptr) return;
    return event.kind == kRequest ? requested(event) : asked(event);
  }
  check(end != nullptr, "an event for an id that has ended");
  if (end == nullptr) return;
  check(end->user == this, "an event for another user");
  const bool of_listener = end->state == State::kAsked && !end->adopted;
  check(event.context == (of_listener ? static_cast<void*>(this) : end),
        "an event with another context");
  check(end->state == State::kTrying ? event.remote.is_of_same_host(end->peer)
                                     : event.remote == end->peer,
        "an event with another peer");
  if (event.kind == kReply) return replied(*end, event);
  if (event.kind == kEstablished) return established(*end, event);
  if (event.kind == kResolved) return resolved(*end, event);
  ended(*end, event);
}

Time SimulatedUser::last_received(ConnectionId id, void* context) {
  const End* const end = process_.find(id);
  check(end != nullptr && end == context && end->user == this, "heard() of an id that has ended");
  check(end == nullptr || end->watched, "heard() of a connection that is not watched");
  return end != nullptr ? end->last_received : Time{};
}

End& SimulatedUser::open_asked(const CmEvent& event, End& requester) {
  End& end = process_.shared.ledger.open();
  end.state = State::kAsked;
  end.listener = event.listener;
  end.user = this;
  end.peer = event.remote;
  end.other = &requester;
  end.resolves = requester.resolves;
  end.watched = requester.watched;
  process_.enter(end, event.id);
  return end;
}

void SimulatedUser::requested(const CmEvent& event) {
  const auto* const req = message_of<wire::CmReq>(event);
  if (req == nullptr) return check(false, "a request without a REQ");
  check(req->service == listeners_[event.listener].service, "a request for another service");
  if (welcome_strangers && !read_letter(Letter::kReq, req->data)) return met(event);
  Ledger& ledger = process_.shared.ledger;
  End* const requester = ledger.find(read_letter(Letter::kReq, req->data, event.more));
  if (requester == nullptr) return check(false, "a REQ with other private data");
  check(event.more.size() == more_bytes(requester->number, Letter::kReq), "a REQ of other length");
  check(req->local_id == requester->id && req->ca_guid == requester->guid &&
            req->qpn == requester->qpn() && event.remote.address == requester->address,
        "a REQ with other members");
  for (const End& end : ledger.ends()) {
    const bool rests = end.forwarded && process_.now() - end.began < process_.undecided_limit;
    const bool known = end.half_open() || end.confirmed || rests;
    check(end.requests || end.life != process_.life || end.other != requester || !known,
          "a repeated REQ is reported again");
  }
  End& end = open_asked(event, *requester);
  end.req = *event.mad;
  decide_request(end);
}

void SimulatedUser::met(const CmEvent& event) {
  End& end = process_.shared.ledger.open();
  end.stranger = true;
  end.state = State::kAsked;
  end.listener = event.listener;
  end.user = this;
  end.peer = event.remote;
  process_.enter(end, event.id);
  if (event.kind == kResolve) return;
  end.req = *event.mad;
  if (process_.shared.maybe(process_.shared.habits.delays)) {
    check(process_.agent().delay(end.id, 8, process_.now()).ok(), "delay() fails");
  }
  if (process_.shared.maybe_rare(process_.shared.habits.hands_over) && hand_over(end)) return;
  if (process_.shared.maybe(0.5)) accept(end);
}

void SimulatedUser::asked(const CmEvent& event) {
  const auto* const req = message_of<wire::CmSidrReq>(event);
  if (req == nullptr) return check(false, "a query without a SIDR_REQ");
  check(req->service == listeners_[event.listener].service, "a query for another service");
  if (welcome_strangers && !read_letter(Letter::kSidrReq, req->data)) return met(event);
  End* const requester = process_.shared.ledger.find(read_letter(Letter::kSidrReq, req->data));
  if (requester == nullptr) return check(false, "a SIDR_REQ with other private data");
  check(req->request == requester->id && event.remote.address == requester->address,
        "a SIDR_REQ with other members");
  const auto same = [&](const End& end) { return end.half_open() && end.other == requester; };
  check(process_.any_end(same) == nullptr, "a repeated SIDR_REQ is reported again");
  decide_query(open_asked(event, *requester));
}

void SimulatedUser::replied(End& end, const CmEvent& event) {
  const auto* const rep = message_of<wire::CmRep>(event);
  if (rep == nullptr) return check(false, "a reply without a REP");
  check(end.state == State::kTrying && !end.resolves, "a reply after the first one");
  End* const acceptor =
      process_.shared.ledger.find(read_letter(Letter::kRep, rep->data, event.more));
  if (acceptor == nullptr) return check(false, "a REP with other private data");
  check(event.more.size() == more_bytes(acceptor->number, Letter::kRep), "a REP of other length");
  check(acceptor->other == &end && acceptor->id == rep->local_id && rep->remote_id == end.id &&
            rep->qpn == acceptor->qpn() && rep->ca_guid == acceptor->guid &&
            event.remote.address == acceptor->address,
        "a REP with other members");
  end.other = acceptor;
  end.peer = event.remote;
  end.state = State::kReplied;
  decide_reply(end);
}

void SimulatedUser::established(End& end, const CmEvent& event) {
  check(end.state == State::kAccepted, "established without having accepted");
  check(end.stranger || (end.other->confirmed && end.other->other == &end),
        "established without a requester that confirmed");
  if (const auto* const rtu = message_of<wire::CmRtu>(event); rtu != nullptr && !end.stranger) {
    check(end.other->silent ? is_zero(rtu->data)
                            : read_letter(Letter::kRtu, rtu->data) == end.other->number,
          "an RTU with other private data");
  }
  end.state = State::kUp;
  end.confirmed = true;
}

void SimulatedUser::resolved(End& end, const CmEvent& event) {
  const auto* const rep = message_of<wire::CmSidrRep>(event);
  if (rep == nullptr) return check(false, "resolved without a SIDR_REP");
  check(end.resolves && end.requests, "an unexpected SIDR_REP");
  if (rep->status == 0) {
    const End* const other = process_.shared.ledger.find(read_letter(Letter::kSidrRep, rep->data));
    if (other == nullptr) return check(false, "a SIDR_REP with other private data");
    check(other->other == &end && rep->qpn == other->qpn(), "a SIDR_REP with other members");
  }
  process_.leave(end);
}

void SimulatedUser::ended(End& end, const CmEvent& event) {
  process_.shared.ledger.check_end(end, event.kind, process_.now());
  if (event.kind == kRejected) check_rejection(end, event);
  if (event.kind == kUnreachable) check_unreachable(end);
  const auto* const dreq = message_of<wire::CmDreq>(event);
  if (event.kind == kDisconnected && dreq != nullptr && !end.stranger) {
    const auto number = read_letter(Letter::kDreq, dreq->data);
    check(is_zero(dreq->data) || (end.other->closed && number == end.other->number),
          "a DREQ with other private data");
  }
  process_.leave(end);
}

void SimulatedUser::check_unreachable(const End& end) {
  check(end.ends_unreachable, "an attempt ends although its user wants none to");
  const bool first = process_.has_report(end.asked, end.began);
  const bool second = !end.asked_second || process_.has_report(*end.asked_second, end.began);
  // A port of that host that has asked for time is the only place from then on.
  check((first && second) || process_.has_report_of_host(end.asked, end.began),
        "unreachable without a report");
}

void SimulatedUser::check_rejection(const End& end, const CmEvent& event) {
  const auto* const rej = message_of<wire::CmRej>(event);
  if (rej == nullptr) return check(false, "rejected without a REJ");
  if (rej->reason != wire::CmReason::kConsumer) return;
  Ledger& ledger = process_.shared.ledger;
  if (const End* const closed = ledger.find(read_letter(Letter::kDreq, rej->data))) {
    return check(closed->closed, "a REJ for disconnect() without that");
  }
  const End* const other = ledger.find(read_letter(Letter::kRej, rej->data, event.more));
  if (other == nullptr) return check(false, "a REJ with other private data");
  check(event.more.size() == more_bytes(other->number, Letter::kRej), "a REJ of other length");
  check(other->rejected && (end.requests ? other->other == &end : other == end.other),
        "a REJ of another connection");
}

void SimulatedUser::call() {
  const Habits& habits = process_.shared.habits;
  double left = std::uniform_real_distribution<>(0, 1)(process_.shared.network.random());
  const auto is = [&](double probability) { return (left -= probability) < 0; };
  const auto mine = [this](const End& end) { return end.user == this; };
  const auto any_process = [this] {
    return static_cast<unsigned>(process_.shared.below(process_.shared.processes));
  };
  const auto any_service = [this] {
    return kFirstService + process_.shared.below(process_.shared.maybe(0.9) ? 2 : kServices);
  };
  if (is(habits.ends)) {
    End* const end = process_.any_end(mine);
    if (end != nullptr) process_.shared.maybe(0.9) ? disconnect(*end) : abandon(*end);
  } else if (is(habits.talks)) {
    const auto up = [](const End& end) { return end.state == State::kUp && !end.stranger; };
    if (const End* const end = process_.any_end(up)) talk(*end);
  } else if (is(habits.closes)) {
    close();
  } else if (is(habits.lies)) {
    Remote place = process_.shared.remote(process_.number, any_process());
    if (process_.shared.maybe_rare(habits.two_places)) place.address.set_port(kRelayPort);
    process_.report_unreachable(place);
  } else if (is(0.05)) {
    if (const End* const end = process_.any_end(mine)) {
      process_.agent().probe(end->id, process_.now());
      check(process_.agent().last_received(end->id) <= process_.now(), "heard() of the future");
    }
  } else if (is(0.1)) {
    resolve(any_process(), any_service());
  } else if (is(0.05)) {
    listen(kFirstService + process_.shared.below(kServices), 1 + process_.shared.below(8));
  } else if (is(0.02)) {
    if (!listeners_.empty()) stop(listeners_.begin()->first);
  } else if (is(0.1)) {
    misuse();
  } else {
    connect(any_process(), any_service(), process_.shared.maybe(0.5));
  }
}

void SimulatedUser::listen(std::uint64_t service, std::size_t backlog) {
  const auto id = process_.agent().listen(service, backlog, *this, this);
  if (!id) return check(id.error().code == EADDRINUSE, "listen() fails otherwise");
  check(listeners_.count(id.value()) == 0, "a listener's id that is in use");
  listeners_[id.value()] = {service, backlog};
  check(!process_.agent().listen(service, backlog, *this, this).ok(), "two listeners of a service");
}

void SimulatedUser::stop(ListenerId listener) {
  process_.agent().stop(listener, process_.now());
  listeners_.erase(listener);
  const auto of_it = [&](const End& end) { return end.half_open() && end.listener == listener; };
  while (End* const end = process_.any_end(of_it)) {
    end->listener = 0;
    if (end->state == State::kAsked) process_.leave(*end);
  }
}

End* SimulatedUser::connect(unsigned to, std::uint64_t service, bool watched) {
  Shared& shared = process_.shared;
  End& end = shared.ledger.open();
  end.requests = true;
  end.watched = watched;
  ConnectRequest request;
  request.to = shared.remote(process_.number, to);
  request.req.service = service;
  request.req.qpn = end.qpn();
  request.req.pkey = 0xFFFF;
  put_letter(request.req.data, &request.more, end, Letter::kReq);
  request.repeats = shared.repeats;
  request.watched = watched;
  if (shared.maybe_rare(shared.habits.two_places)) {
    request.other = request.to;
    request.other->address.set_port(kRelayPort);
    request.other_after = shared.habits.other_after;
    process_.know(*request.other);
  }
  request.ends_unreachable = shared.maybe_rare(shared.habits.two_places);
  end.asked_second = request.other;
  end.ends_unreachable = request.ends_unreachable;
  process_.know(request.to);
  return open_trying(request.to, process_.agent().connect(request, *this, &end, process_.now()),
                     end);
}

End* SimulatedUser::resolve(unsigned to, std::uint64_t service) {
  Shared& shared = process_.shared;
  End& end = shared.ledger.open();
  end.requests = end.resolves = true;
  const Remote remote = shared.remote(process_.number, to);
  ResolveRequest request{remote, {}, shared.repeats};
  request.req.service = service;
  put_letter(request.req.data, nullptr, end, Letter::kSidrReq);
  end.ends_unreachable = request.ends_unreachable = shared.maybe_rare(shared.habits.two_places);
  process_.know(remote);
  return open_trying(remote, process_.agent().resolve(request, *this, &end, process_.now()), end);
}

End* SimulatedUser::open_trying(const Remote& to, const Result<ConnectionId>& id, End& end) {
  if (!id) {
    check(false, "connect() fails: " + id.error().message);
    end.state = State::kOver;
    return nullptr;
  }
  end.user = this;
  end.peer = end.asked = to;
  end.limit = process_.shared.repeats.limit;
  process_.enter(end, id.value());
  return &end;
}

void SimulatedUser::disconnect(End& end) {
  end.closed = true;
  process_.agent().disconnect(end.id, write_letter(end.number, Letter::kDreq, kDreqData),
                              process_.now());
  process_.leave(end);
}

void SimulatedUser::abandon(End& end) {
  end.abandoned = true;
  process_.agent().abandon(end.id, process_.now());
  process_.leave(end);
}

void SimulatedUser::talk(const End& end) {
  Bytes bytes(8);
  for (std::size_t i = 0; i < 4; ++i) {
    bytes[i] = static_cast<std::byte>(end.other->id >> 8 * i);
    bytes[4 + i] = static_cast<std::byte>(end.number >> 8 * i);
  }
  process_.shared.network.send({process_.address(), end.peer.carrier}, end.peer, true, bytes);
}

void SimulatedUser::close() {
  while (!listeners_.empty()) stop(listeners_.begin()->first);
  const auto mine = [this](const End& end) { return end.user == this; };
  while (End* const end = process_.any_end(mine)) disconnect(*end);
}

void SimulatedUser::check_backlogs() {
  for (const auto& [id, listener] : listeners_) {
    std::array<std::size_t, kCarriers> half_open{};
    process_.any_end([&, its_id = id](const End& end) {
      const bool counts = end.half_open() && end.listener == its_id;
      half_open[static_cast<std::size_t>(end.peer.carrier)] += counts ? 1 : 0;
      return false;
    });
    check(std::ranges::max(half_open) <= listener.backlog, "more requests than the backlog");
  }
}

nanoseconds SimulatedUser::draw_pause() {
  const nanoseconds most =
      process_.shared.maybe(0.8) ? microseconds(500) : process_.shared.habits.longest_pause;
  return nanoseconds(process_.shared.below(static_cast<std::uint64_t>(most.count())));
}

void SimulatedUser::decide_request(End& end) {
  const Habits& habits = process_.shared.habits;
  if (process_.shared.maybe(habits.ignores)) return;
  if (process_.shared.maybe(habits.delays)) {
    const auto timeout = static_cast<std::uint8_t>(8 + process_.shared.below(11));
    check(process_.agent().delay(end.id, timeout, process_.now()).ok(), "delay() fails");
  }
  decide(end, [this, &end, &habits] {
    if (process_.shared.maybe_rare(habits.hands_over) && hand_over(end)) return;
    if (process_.shared.maybe(habits.accepts)) return accept(end);
    process_.shared.maybe(0.8) ? reject(end) : disconnect(end);
  });
}

// The two calls come in any order: a request that has come from another process may be known where
// it goes. False when it is still this process's.
bool SimulatedUser::hand_over(End& end) {
  Process* const to = process_.any_neighbour();
  if (to == nullptr) return false;
  const bool forwards_first = !end.adopted && process_.shared.maybe(0.5);
  if (forwards_first && !forward(end)) return true;  // the requester has withdrawn it
  SimulatedUser& user = to->any_user();
  End* const adopted = user.adopt(end);
  if (adopted == nullptr) return forwards_first;
  if (!forwards_first) forward(end);
  if (!adopted->stranger) {
    user.decide_request(*adopted);
  } else if (process_.shared.maybe(0.5)) {
    user.accept(*adopted);
  }
  return true;
}

bool SimulatedUser::forward(End& end) {
  if (!process_.agent().forward(end.id, process_.now())) return false;
  end.forwarded = true;
  process_.leave(end);
  return true;
}

End* SimulatedUser::adopt(const End& asked) {
  Ledger& ledger = process_.shared.ledger;
  const auto is_same = [&](const End& each) {
    return !each.requests && each.life == process_.life && each.other == asked.other;
  };
  const bool known = std::any_of(ledger.ends().begin(), ledger.ends().end(), is_same);
  End& end = ledger.open();
  end.state = State::kAsked;
  end.adopted = true;
  end.user = this;
  end.peer = asked.peer;
  end.other = asked.other;
  end.watched = asked.watched;
  end.stranger = asked.stranger;
  end.req = asked.req;
  process_.know(end.peer);
  const auto id = process_.agent().adopt(end.peer, end.req, *this, &end, process_.now());
  if (id) {
    process_.enter(end, id.value());
    return &end;
  }
  check(id.error().code == EALREADY && (known || ledger.forged), "adopt() fails");
  end.state = State::kOver;
  return nullptr;
}

void SimulatedUser::decide_reply(End& end) {
  decide(end, [this, &end] {
    if (process_.shared.maybe(process_.shared.habits.confirms)) return confirm(end);
    process_.shared.maybe(0.5) ? reject(end) : disconnect(end);
  });
}

void SimulatedUser::decide_query(End& end) {
  if (process_.shared.maybe(process_.shared.habits.ignores)) return;
  decide(end, [this, &end] { process_.shared.maybe(0.8) ? answer(end) : disconnect(end); });
}

void SimulatedUser::answer(End& end) {
  wire::CmSidrRep reply;
  reply.status = process_.shared.maybe(0.9) ? 0 : 2;
  reply.qpn = end.qpn();
  put_letter(reply.data, nullptr, end, Letter::kSidrRep);
  if (process_.agent().answer(end.id, reply, process_.now())) process_.leave(end);
}

void SimulatedUser::accept(End& end) {
  AcceptRequest reply;
  reply.rep.qpn = end.qpn();
  put_letter(reply.rep.data, &reply.more, end, Letter::kRep);
  reply.watched = end.watched;
  SimulatedUser& user = process_.any_user();
  if (!process_.agent().accept(end.id, reply, user, &end, process_.now())) return;
  end.user = &user;
  end.state = State::kAccepted;
}

void SimulatedUser::confirm(End& end) {
  const bool writes = process_.shared.maybe(0.5);
  const Bytes data = writes ? write_letter(end.number, Letter::kRtu, kRtuData) : Bytes();
  end.silent = !writes;
  if (!process_.agent().confirm(end.id, data, process_.now())) return;
  end.state = State::kUp;
  end.confirmed = true;
}

void SimulatedUser::reject(End& end) {
  const Bytes data =
      write_letter(end.number, Letter::kRej, kRejData + more_bytes(end.number, Letter::kRej));
  if (!process_.agent().reject(end.id, wire::CmReason::kConsumer, data, process_.now())) return;
  end.rejected = true;
  process_.leave(end);
}

void SimulatedUser::misuse_no_id(ConnectionId id) {
  Agent& agent = process_.agent();
  const Time now = process_.now();
  const Status accepted = agent.accept(id, {}, *this, this, now);
  check(!accepted && accepted.error().code == ENOENT, "accept() of no request");
  check(!agent.confirm(id, {}, now), "confirm() of no connection");
  check(!agent.reject(id, wire::CmReason::kConsumer, {}, now), "reject() of no connection");
  check(!agent.delay(id, 8, now), "delay() of no request");
  check(!agent.forward(id, now), "forward() of no request");
  check(!agent.answer(id, {}, now), "answer() of no query");
  check(agent.last_received(id) == Time{}, "heard() of no connection");
  agent.established(id, now);
  agent.probe(id, now);
  agent.disconnect(id, {}, now);
  agent.abandon(id, now);
}

void SimulatedUser::misuse() {
  Agent& agent = process_.agent();
  if (agent.has_events()) return;  // the user does not know yet which calls are right
  const Time now = process_.now();
  const auto id =
      static_cast<ConnectionId>(process_.address().port() << 16 | process_.shared.below(0x1'0000));
  if (process_.find(id) == nullptr) misuse_no_id(id);
  ConnectRequest request;
  request.to = process_.shared.remote(process_.number, 0);
  request.more.resize(kMaxMorePrivateData + 1);
  const auto refused = agent.connect(request, *this, this, now);
  check(!refused && refused.error().code == EINVAL, "connect() with too long private data");
  const auto in_state = [&](State state) {
    return process_.any_end([state](const End& e) { return e.state == state; });
  };
  if (const End* const trying = in_state(State::kTrying)) {
    check(!agent.accept(trying->id, {}, *this, this, now), "accept() by a requester");
    check(!agent.confirm(trying->id, {}, now), "confirm() before the reply");
    check(!agent.forward(trying->id, now), "forward() by a requester");
    check(!agent.delay(trying->id, 8, now), "delay() by a requester");
    check(!agent.answer(trying->id, {}, now), "answer() by a requester");
    agent.established(trying->id, now);
  }
  if (const End* const asked = in_state(State::kAsked)) {
    AcceptRequest reply;
    reply.more.resize(kMaxMorePrivateData + 1);
    check(!agent.accept(asked->id, reply, *this, this, now), "accept() with too long private data");
    check(!agent.confirm(asked->id, {}, now), "confirm() by an acceptor");
    const auto twice = agent.adopt(asked->peer, asked->req, *this, this, now);
    check(!twice && twice.error().code == (asked->req.transaction == 0 ? EINVAL : EALREADY),
          "adopt() of a request that it has");
    check(asked->resolves == (asked->resolves && !agent.delay(asked->id, 32, now)),
          "delay() with a timeout of 6 bits");
    agent.established(asked->id, now);
  }
  if (const End* const up = in_state(State::kUp)) {
    check(!agent.accept(up->id, {}, *this, this, now), "accept() of a connection");
    check(!agent.reject(up->id, wire::CmReason::kConsumer, {}, now), "reject() of a connection");
  }
}

}  // namespace weft::cm::testing
