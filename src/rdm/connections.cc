// SPDX-License-Identifier: BSD-2-Clause
// How do the flows of an endpoint begin and end by its connection manager?
#include "connections.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "wire/endian.h"
#include "wire/packet.h"

namespace weft::rdm {
namespace {

// Requests of one peer that await their RTU, and flows that it has: it needs one, and another one
// while the first is being forgotten.
constexpr std::size_t kMostOfOnePeer = 16;
// Flows that await their RTU: a flood of forged requests costs so many contexts.
constexpr std::size_t kBacklog = 4096;

// An address of a link has the number of the link at the sender.
bool names_source(os::SocketAddress name, const os::SocketAddress& source) {
  if (name.is_any() || name == source) return true;
  return name.is_link_local() && source.is_link_local() && name.host() == source.host() &&
         name.port() == source.port();
}

}  // namespace

std::optional<wire::CmReason> refusal_of(const std::optional<FlowRequest>& request,
                                         const os::SocketAddress& sender, Stats& stats) {
  if (!request) {
    stats.add(Stat::kInvalidMessages);
    return wire::CmReason::kUnsupported;
  }
  if (request->me.endpoint_id == 0) {  // names no endpoint
    stats.add(Stat::kMalformedPackets);
    return wire::CmReason::kUnsupported;
  }
  if (!names_source(request->name, sender)) return wire::CmReason::kConsumer;
  return std::nullopt;
}

FlowEnd end_of(const wire::CmMad* mad) {
  if (mad == nullptr) return {};
  if (const auto* rej = std::get_if<wire::CmRej>(&mad->message)) return read_end(rej->data);
  if (const auto* dreq = std::get_if<wire::CmDreq>(&mad->message)) return read_end(dreq->data);
  return {};
}

FlowConnections::FlowConnections(Shared& shared, FlowTable& flows)
    : shared_(shared), flows_(flows) {
  shared.connections = this;
  static_cast<void>(shared.agent.listen(kFlowService, kBacklog, *this, nullptr));
}

void FlowConnections::take(const roce::PacketArrival& arrival) {
  if (arrival.packet.queue_key != wire::kCmQueueKey)
    return shared_.stats.add(Stat::kQkeyViolations);
  arrival_ = &arrival;
  const bool taken = shared_.agent.take({arrival.from, cm::Carrier::kPackets},
                                        arrival.packet.payload, shared_.now);
  report();
  arrival_ = nullptr;
  if (!taken || probing_.empty()) return;
  std::erase_if(probing_, [this](std::uint32_t number) {
    const Context* const context = flows_.contexts().find(number);
    return context == nullptr || context->out->look_for_sign();
  });
}

cm::ConnectionId FlowConnections::connect(const cm::ConnectRequest& request, std::uint32_t context,
                                          os::Time now) {
  const auto id = shared_.agent.connect(request, *this, Shared::cm_context(context), now);
  return id ? id.value() : 0;
}

void FlowConnections::probe(const FlowInitiator& flow, os::Time now) {
  shared_.agent.probe(flow.connection(), now);
  const std::uint32_t context = flow.context();
  if (std::ranges::find(probing_, context) == probing_.end()) probing_.push_back(context);
}

// It names no connection: this end knows none, and the packet does not say.
void FlowConnections::reject_unknown(const roce::PacketArrival& arrival) {
  arrival_ = &arrival;
  shared_.agent.reject_unknown({arrival.from, cm::Carrier::kPackets}, shared_.now);
  arrival_ = nullptr;
}

void FlowConnections::suspect(const os::SocketAddress& peer) {
  shared_.agent.unreachable({peer, cm::Carrier::kPackets}, shared_.now);
  report();
}

Result<std::shared_ptr<const roce::Path>> FlowConnections::path_to(const os::SocketAddress& peer) {
  if (arrival_ != nullptr && arrival_->from == peer) return flows_.path_between(arrival_->to, peer);
  return flows_.path_to(peer);
}

void FlowConnections::send(const os::SocketAddress& to, std::span<const std::byte> message) {
  shared_.host.wake();  // a thread that sleeps does not see the manager's new deadline
  const auto path = path_to(to);
  if (path) flows_.emission().send_cm(*path.value(), message);
}

Time FlowConnections::last_received(cm::ConnectionId, void* context) {
  const Context* const found = flows_.contexts().find(Shared::number_of(context));
  return found != nullptr ? found->last_received() : os::Time{};
}

void FlowConnections::handle(const cm::CmEvent& event) {
  if (event.kind == cm::EventKind::kRequest) return on_request(event);
  if (event.kind == cm::EventKind::kResolve) return refuse_query(event.id);
  Context* const context = flows_.contexts().find(Shared::number_of(event.context));
  if (context == nullptr) return;
  const bool both = context->out != nullptr && context->in != nullptr;
  if (both ? context->out->flow().has(event.id) : context->out != nullptr) {
    on_event(*context->out, event);
  } else if (context->in != nullptr) {
    on_event(*context->in, event);
  }
}

void FlowConnections::refuse_query(cm::ConnectionId query) {
  wire::CmSidrRep none;
  none.status = 1;
  static_cast<void>(shared_.agent.answer(query, none, shared_.now));
}

void FlowConnections::on_event(RdmSender& out, const cm::CmEvent& event) {
  using enum cm::EventKind;
  switch (event.kind) {
    case kReply:
      if (const auto reply = read_reply(std::get<wire::CmRep>(event.mad->message))) {
        out.on_reply(event.id, *reply, *event.mad, shared_.now);
      } else {
        shared_.stats.add(Stat::kInvalidMessages);
        static_cast<void>(
            shared_.agent.reject(event.id, wire::CmReason::kUnsupported, {}, shared_.now));
        out.on_rejected(event.id, wire::CmReason::kUnsupported, {});
      }
      return;
    case kRejected:
      return out.on_rejected(event.id, std::get<wire::CmRej>(event.mad->message).reason,
                             end_of(event.mad));
    case kTimedOut:
      return out.on_rejected(event.id, wire::CmReason::kTimeout, {});
    case kDisconnected:
      return out.on_disconnected(event.id, end_of(event.mad), shared_.now);
    case kPeerLost:
      return out.on_lost(event.id);
    case kRequest:
    case kEstablished:
    case kWithdrawn:
    case kOverrun:
    case kUnreachable:
    case kResolve:
    case kResolved:
      return;
  }
}

void FlowConnections::on_event(RdmReceiver& in, const cm::CmEvent& event) {
  using enum cm::EventKind;
  if (event.kind == kEstablished) return on_established(in, event.id);
  if (in.forget(event.id)) on_end(in, event);
}

void FlowConnections::on_end(RdmReceiver& in, const cm::CmEvent& event) {
  const bool died =
      event.kind == cm::EventKind::kPeerLost || event.kind == cm::EventKind::kTimedOut;
  if (!in.is_paired()) return flows_.close_source(in, died);
  RdmSender& out = *flows_.contexts().find(in.context())->out;
  out.lose(died ? link::PeerState::kDied : link::PeerState::kLeft);
}

// What a REQ says of the path counts when its sender is known to receive at that address.
void FlowConnections::on_established(RdmReceiver& in, cm::ConnectionId id) {
  if (in.connection() != id) return;
  in.establish();
  const os::SocketAddress peer = in.path().to;
  RdmSender* const out = flows_.out_to(peer);
  if (in.is_paired()) flows_.narrow(peer, in.path_mtu());
  if (out != nullptr && out->flow().endpoint_id() == in.endpoint_id()) out->narrow(in.path_mtu());
  flows_.look_at_path(peer);
}

void FlowConnections::on_request(const cm::CmEvent& event) {
  const auto request = read_request(std::get<wire::CmReq>(event.mad->message));
  auto refusal = refusal_of(request, event.remote.address, shared_.stats);
  const bool other_key =
      !refusal && !is_proven(shared_.options.authorization, *request, shared_.options.name.port());
  if (other_key) {
    refusal = wire::CmReason::kConsumer;
  } else if (!refusal) {
    const bool fresh = request->continued.identity == 0;
    refusal = fresh ? accept(event, *request) : change(event, *request);
  }
  if (!refusal) return;
  const auto data = write_end({{}, *refusal == wire::CmReason::kConsumer, other_key});
  static_cast<void>(shared_.agent.refuse(event.id, *refusal, data, shared_.now));
}

// A peer begins a flow to this end.
std::optional<wire::CmReason> FlowConnections::accept(const cm::CmEvent& event,
                                                      const FlowRequest& request) {
  const os::SocketAddress& peer = event.remote.address;
  if (!shared_.options.takes_flows) return wire::CmReason::kConsumer;
  if (!has_room_for(peer)) return wire::CmReason::kNoResources;
  auto path = path_to(peer);
  if (!path) return wire::CmReason::kNoResources;
  FlowReply reply;
  RdmReceiver& in = flows_.open_in(request, event, std::move(path).value(), reply);
  accept(event, in, reply);
  return {};
}

// A flow continues with packets of another size. A late REQ names a connection that was replaced.
std::optional<wire::CmReason> FlowConnections::change(const cm::CmEvent& event,
                                                      const FlowRequest& request) {
  RdmReceiver* const in = flows_.find_in(event.remote.address, request.continued);
  if (in == nullptr) return wire::CmReason::kStale;
  if (in->target().is_shut()) return wire::CmReason::kConsumer;
  accept(event, *in, in->change(request, event.id));
  shared_.agent.established(event.id, shared_.now);  // so that no forged request displaces it
  flows_.emission().activate(in->context());
  return {};
}

void FlowConnections::accept(const cm::CmEvent& event, RdmReceiver& in, const FlowReply& reply) {
  static_cast<void>(shared_.agent.accept(event.id, {write_reply(reply), {}, true}, *this,
                                         Shared::cm_context(in.context()), shared_.now));
}

// Requests are forged easily: they displace each other, but no flow whose peer has answered.
bool FlowConnections::has_room_for(const os::SocketAddress& peer) {
  std::vector<RdmReceiver*> known = flows_.in_from(peer);
  if (known.size() >= kMostOfOnePeer) {
    std::erase_if(known, [](const RdmReceiver* in) { return in->is_established(); });
    if (known.empty()) return false;
    const auto last_received = [](const RdmReceiver* in) { return in->last_received(); };
    RdmReceiver& oldest = **std::ranges::min_element(known, {}, last_received);
    oldest.abandon();  // a forged REQ draws no further packet
    flows_.close_source(oldest, false);
  }
  return flows_.contexts().has_room();
}

}  // namespace weft::rdm
