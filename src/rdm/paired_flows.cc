// SPDX-License-Identifier: BSD-2-Clause
// How do the connections of an endpoint's programs begin and end?
#include "paired_flows.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "flow.h"
#include "rdm/connection_message.h"
#include "wire/packet.h"

namespace weft::rdm {
namespace {

// What a user has sent before it ends a connection is delivered within this time.
constexpr auto kMaxDrainTime = std::chrono::seconds(2);

}  // namespace

PairedFlows::PairedFlows(Shared& shared, FlowTable& flows, FlowConnections& manager)
    : shared_(shared), flows_(flows), manager_(manager) {
  shared.pairs = this;
}

Context& PairedFlows::add(const PeerPath& peer_path, link::ConnectionUser& user) {
  Context& context = flows_.contexts().create();
  context.pair = std::make_unique<PairedFlow>();
  PairedFlow& pair = *context.pair;
  pair.user = &user;
  pair.path = peer_path.path;
  pair.path_mtu = peer_path.path_mtu;
  pair.first = Psn(static_cast<std::uint32_t>(shared_.host.random()));
  pair.since = shared_.host.now();
  flows_.add_pair(pair.path, context.number);
  return context;
}

link::ConnectionNumber PairedFlows::name(Context& context, cm::ConnectionId id) {
  context.pair->connection = context.pair->number = id;
  contexts_[id] = context.number;
  return id;
}

void PairedFlows::remove(Context& context) {
  if (context.in != nullptr) flows_.sources().forget(context.in->number());
  flows_.remove_pair(context.pair->path->to, context.number);
  contexts_.erase(context.pair->number);
  flows_.contexts().destroy(context);
}

FlowReply PairedFlows::introduce(const Context& context) const {
  FlowReply own{shared_.me, context.pair->first};
  own.me.context = context.number;
  own.me.path_mtu = context.pair->path_mtu;
  return own;
}

Result<link::ConnectionNumber> PairedFlows::request(const os::SocketAddress& listener,
                                                    std::span<const std::byte> data,
                                                    link::ConnectionUser& user) {
  const auto peer_path = flows_.path_of_flow(listener);
  if (!peer_path) return peer_path.error();
  Context& context = add(peer_path.value(), user);
  const FlowReply own = introduce(context);
  FlowRequest said;
  said.me = own.me;
  said.name = shared_.options.name;
  said.first = own.first;
  said.proof =
      prove(shared_.options.authorization, shared_.host.random(), said.me, listener.port());
  cm::ConnectRequest wanted;
  wanted.to = {listener, cm::Carrier::kPackets};
  wanted.req = write_request(said);
  wanted.req.service = connection_service(listener.port());
  wanted.more.assign(data.begin(), data.end());
  wanted.repeats.limit = shared_.options.device->request_timeout;
  wanted.watched = true;
  wanted.other = wanted.to;
  wanted.other->address.set_port(wire::kUdpPort);
  wanted.ends_unreachable = true;
  const auto id =
      shared_.agent.connect(wanted, *this, Shared::cm_context(context.number), context.pair->since);
  if (!id) return remove(context), id.error();
  return name(context, id.value());
}

Result<link::ConnectionNumber> PairedFlows::accept(const link::ConnectionRequest& request,
                                                   std::span<const std::byte> data,
                                                   link::ConnectionUser& user) {
  const auto& req = std::get<wire::CmReq>(request.req.message);
  const auto asked = read_request(req);
  if (!asked) return Error{EINVAL, "this is no request for a connection"};
  auto peer_path = flows_.path_of_flow(request.peer);
  if (!peer_path) return peer_path.error();
  if (shared_.options.name.is_any()) {
    os::SocketAddress from = request.asked;
    from.set_port(shared_.options.name.port());
    peer_path.value().path = flows_.path_between(from, request.peer);
  }
  peer_path.value().path_mtu = std::min(peer_path.value().path_mtu, asked->me.path_mtu);
  Context& context = add(peer_path.value(), user);
  PairedFlow& pair = *context.pair;
  const os::Time now = pair.since;
  void* const number = Shared::cm_context(context.number);
  const auto id =
      shared_.agent.adopt({request.peer, cm::Carrier::kPackets}, request.req, *this, number, now);
  if (!id) return remove(context), id.error();
  name(context, id.value());
  pair.phase = PairPhase::kAccepted;
  pair.other = {asked->me, asked->first};
  pair.identity = request.req.transaction;
  pair.peer_number = req.local_id;
  open_in(context);
  const cm::AcceptRequest reply{write_reply(introduce(context)),
                                {data.begin(), data.end()},
                                true,
                                request.credits,
                                request.delayed};
  static_cast<void>(shared_.agent.accept(pair.connection, reply, *this, number, now));
  return pair.number;
}

bool PairedFlows::disconnect(link::ConnectionNumber number) {
  const auto found = contexts_.find(number);
  if (found == contexts_.end()) return false;
  end_by_user(*flows_.contexts().find(found->second));
  contexts_.erase(number);
  return true;
}

void PairedFlows::end_by_user(Context& context) {
  PairedFlow& pair = *context.pair;
  switch (pair.phase) {
    case PairPhase::kAsking:
    case PairPhase::kAccepted:
      shared_.agent.disconnect(pair.connection, {}, shared_.host.now());
      return remove(context);
    case PairPhase::kOpen:
      pair.phase = PairPhase::kLeaving;
      pair.since = shared_.host.now();
      context.in->target().discard();
      shared_.named_operations.abandon_receives_from(context.in->number());
      leaving_.push_back(context.number);
      return note(context.number);
    case PairPhase::kLeaving:
    case PairPhase::kOver:
      return;
  }
}

Time PairedFlows::last_received(cm::ConnectionId, void* context) {
  const Context* const found = flows_.contexts().find(Shared::number_of(context));
  return found != nullptr ? found->last_received() : os::Time{};
}

void PairedFlows::handle(const cm::CmEvent& event) {
  Context* const context = flows_.contexts().find(Shared::number_of(event.context));
  if (context == nullptr || context->pair->connection != event.id) return;
  if (event.kind == cm::EventKind::kEstablished) return establish(context->number);
  if (event.kind == cm::EventKind::kReply) return on_reply(*context, event);
  on_end(*context, event);
}

void PairedFlows::on_request(const cm::CmEvent& event, link::ListenerUser& listener) {
  if (event.kind == cm::EventKind::kResolve) return manager_.refuse_query(event.id);
  const auto request = read_request(std::get<wire::CmReq>(event.mad->message));
  const auto refusal = refusal_of(request, event.remote.address, shared_.stats);
  if (refusal) return static_cast<void>(shared_.agent.refuse(event.id, *refusal, {}, shared_.now));
  listener.requested(event.id, {event.remote.address,
                                false,
                                *event.mad,
                                {event.more.begin(), event.more.end()},
                                manager_.asked(),
                                shared_.agent.credits()});
}

// The acceptor is another port of the host that was asked.
void PairedFlows::on_reply(Context& context, const cm::CmEvent& event) {
  PairedFlow& pair = *context.pair;
  const auto& rep = std::get<wire::CmRep>(event.mad->message);
  const auto reply = read_reply(rep);
  auto path = manager_.path_to(event.remote.address);
  if (!reply || !path) {
    static_cast<void>(
        shared_.agent.reject(event.id, wire::CmReason::kUnsupported, {}, shared_.now));
    return on_end(context, event);
  }
  flows_.remove_pair(pair.path->to, context.number);
  pair.path = std::move(path).value();
  flows_.add_pair(pair.path, context.number);
  pair.other = *reply;
  pair.path_mtu = pair.other.me.path_mtu = std::min(pair.path_mtu, reply->me.path_mtu);
  pair.identity = event.mad->transaction;
  pair.peer_number = rep.local_id;
  open_in(context);
  static_cast<void>(shared_.agent.confirm(event.id, {}, shared_.now));
  open(context, event.more);
}

// An attempt that has failed leaves nothing; an open pair ends at the end of the poll.
// A requester sends a DREQ when it has confirmed only: the RTU was lost.
void PairedFlows::on_end(Context& context, const cm::CmEvent& event) {
  PairedFlow& pair = *context.pair;
  const bool parts =
      event.mad != nullptr && std::holds_alternative<wire::CmDreq>(event.mad->message);
  if (parts && pair.phase == PairPhase::kAccepted) open(context, {});
  pair.connection = 0;
  if (pair.phase == PairPhase::kAsking || pair.phase == PairPhase::kAccepted) {
    const auto [error, data] = failure_of(event, pair.phase == PairPhase::kAsking);
    link::ConnectionUser& user = *pair.user;
    remove(context);
    return user.failed(error, data);
  }
  if (parts) {
    context.out->leave(end_of(event.mad), shared_.now);
  } else if (context.out != nullptr) {
    context.out->lose(link::PeerState::kDied);
  }
}

void PairedFlows::open_in(Context& context) {
  const PairedFlow& pair = *context.pair;
  const RequestSource source{flows_.sources().name(context.number), pair.other.me.endpoint_id,
                             pair.identity, pair.path, context.number};
  context.in = std::make_unique<RdmReceiver>(shared_, pair.other.me, introduce(context),
                                             pair.connection, source);
}

void PairedFlows::establish(std::uint32_t number) {
  Context& context = *flows_.contexts().find(number);
  if (context.pair->phase == PairPhase::kAccepted) open(context, {});
}

void PairedFlows::open(Context& context, std::span<const std::byte> data) {
  PairedFlow& pair = *context.pair;
  pair.phase = PairPhase::kOpen;
  context.in->establish();
  context.out = std::make_unique<RdmSender>(shared_, context.number, pair.path, pair.path_mtu,
                                            pair.connection);
  FlowReply other = pair.other;
  other.me.path_mtu = pair.path_mtu;
  context.out->note_received(shared_.now);
  context.out->open(other, pair.identity, pair.peer_number, shared_.now - pair.since);
  context.out->operations().hold();
  shared_.sink->source_opened(context.in->number(), pair.path->to);
  pair.user->connected(context.in->number(),
                       std::make_shared<RdmFlow>(flows_.contexts(), context.number), data);
}

void PairedFlows::note(std::uint32_t context) {
  noted_.push_back(context);
  shared_.host.wake();
}

// One that is leaving still delivers what was sent.
void PairedFlows::refuse(const RdmReceiver& in) {
  if (flows_.contexts().find(in.context())->pair->phase != PairPhase::kOpen) return;
  flows_.contexts().find(in.context())->out->lose(link::PeerState::kRefuses);
}

// Users that hear of an end may end others.
void PairedFlows::settle() {
  if (noted_.empty() && leaving_.empty()) return;
  noted_.insert(noted_.end(), leaving_.begin(), leaving_.end());
  for (std::size_t i = 0; i < noted_.size(); ++i) {
    Context* const context = flows_.contexts().find(noted_[i]);
    if (context != nullptr) look(*context);
  }
  noted_.clear();
  std::erase_if(leaving_, [this](std::uint32_t number) {
    const Context* const context = flows_.contexts().find(number);
    return context == nullptr || context->pair->phase != PairPhase::kLeaving;
  });
}

void PairedFlows::look(Context& context) {
  const PairedFlow& pair = *context.pair;
  if (pair.phase == PairPhase::kOver && !context.out->operations().held()) {
    return flows_.contexts().destroy(context);
  }
  if (pair.phase != PairPhase::kOpen && pair.phase != PairPhase::kLeaving) return;
  const bool lost = context.out->flow().phase() == FlowPhase::kLost;
  const bool drained = pair.phase == PairPhase::kLeaving &&
                       (!context.out->queue().owes() || shared_.now >= pair.since + kMaxDrainTime);
  if (lost || drained) finish(context);
}

// The pair's DREQ ends both directions at the peer.
void PairedFlows::finish(Context& context) {
  PairedFlow& pair = *context.pair;
  const bool reported = std::exchange(pair.phase, PairPhase::kOver) == PairPhase::kOpen;
  end_connection(context);
  context.out->lose(link::PeerState::kLeft);
  context.in->abandon();
  const std::uint32_t source = context.in->number();
  context.in.reset();
  shared_.named_operations.abandon_receives_from(source);
  flows_.remove_pair(pair.path->to, context.number);
  if (reported) {
    const bool died = context.out->flow().peer_state() == link::PeerState::kDied;
    shared_.sink->source_closed(source, died);
  }
  flows_.sources().forget(source);
  contexts_.erase(pair.number);
  if (reported) pair.user->ended();
  note(context.number);
}

void PairedFlows::end_connection(Context& context) {
  if (context.pair->connection == 0) return;
  FlowEnd end;
  if (context.in != nullptr) end.expected = context.in->expected();
  shared_.agent.disconnect(std::exchange(context.pair->connection, 0), write_end(end),
                           shared_.host.now());
}

os::Time PairedFlows::due() const {
  if (!noted_.empty()) return os::Time::min();
  if (leaving_.empty()) return os::Time::max();
  return flows_.contexts().find(leaving_.front())->pair->since + kMaxDrainTime;
}

void PairedFlows::disconnect_all() {
  flows_.contexts().each([this](Context& context) {
    if (context.pair != nullptr) end_connection(context);
  });
}

}  // namespace weft::rdm
