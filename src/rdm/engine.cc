// SPDX-License-Identifier: BSD-2-Clause
// How do endpoints of reliable datagrams speak to each other by packets?
#include "rdm/engine.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "connections.h"
#include "flow.h"
#include "flow_table.h"
#include "paired_flows.h"
#include "rendezvous.h"
#include "roce/congestion_notifier.h"
#include "wire/packet.h"

namespace weft::rdm {
namespace {

Introduction introduction_of(Host& host, const cm::Agent& agent,
                             const RdmEngine::LocalEnd& identity) {
  Introduction me;
  me.endpoint_id = agent.guid();
  me.queue_pair = identity.queue_pair;
  me.queue_key = static_cast<std::uint32_t>(host.random());
  me.room = identity.room;
  return me;
}

}  // namespace

RdmEngine::RdmEngine(Host& host, PortConnections& port, const RdmOptions& options,
                     const LocalEnd& identity, Stats& stats)
    : shared_(std::make_unique<Shared>(host, port.agent(), options,
                                       introduction_of(host, port.agent(), identity), stats)),
      flows_(std::make_unique<FlowTable>(*shared_)),
      connections_(std::make_unique<FlowConnections>(*shared_, *flows_)),
      pairs_(std::make_unique<PairedFlows>(*shared_, *flows_, *connections_)) {
  port.attach(cm::Carrier::kPackets, *pairs_);
}

// Destroying a context reports its end to FlowTable and PairedFlows, so it comes first.
RdmEngine::~RdmEngine() { flows_->contexts().clear(); }

Result<std::unique_ptr<link::Flow>> RdmEngine::connect(const os::SocketAddress& peer) {
  auto out = flows_->open_out(peer);
  if (!out) return out.error();
  out.value()->operations().hold();
  return std::unique_ptr<link::Flow>(
      std::make_unique<RdmFlow>(flows_->contexts(), out.value()->flow().context()));
}

unsigned RdmEngine::poll(link::InboxSink& sink) {
  Shared& shared = *shared_;
  Emission& emission = flows_->emission();
  link::InboxSink* const before = std::exchange(shared.sink, &sink);
  shared.now = shared.host.now();
  if (emission.has_to_emit()) emission.emit(false);
  const Host::Received received = shared.host.receive();
  settle();
  if (received.emptied) shared.emptied = shared.now;
  if (emission.has_to_emit()) emission.emit(false);
  connections_->advance();
  connections_->report();
  flows_->trim();
  flows_->close_leaving();
  pairs_->settle();
  report_received();
  shared.sink = before;
  return received.packets;
}

void RdmEngine::report_received() {
  if (shared_->ended_receives.empty()) return;
  for (const EndedReceive& each : std::exchange(shared_->ended_receives, {})) {
    const bool known = each.error == 0 || each.error == EFAULT;
    shared_->sink->received(each.cookie, known ? each.error : ECONNRESET);
  }
}

void RdmEngine::accept(link::InboxSink& sink, const link::Offer& offer,
                       std::span<const LocalRange> sges, std::uint64_t length, void* cookie) {
  RdmReceiver* from = flows_->source(offer.source);
  if (from == nullptr || from->target().discards()) {
    sink.received(cookie, ECONNRESET);
  } else if (offer.rendezvous_id == 0) {
    from->target().place(sges, length, cookie);
  } else {
    send_cts(flows_->return_path(from->target().source()), offer, from->identity(), sges, length,
             cookie);
  }
}

void RdmEngine::acknowledge(const link::Offer& offer) {
  RdmReceiver* from = flows_->source(offer.source);
  if (from != nullptr) from->target().acknowledge(offer.rendezvous_id);
}

void RdmEngine::refuse(link::InboxSink& sink, std::uint32_t number) {
  RdmReceiver* receiver = flows_->source(number);
  if (receiver == nullptr || receiver->target().is_shut()) return;
  if (receiver->is_paired()) return pairs_->refuse(*receiver);
  flows_->refuse(*receiver);
  shared_->named_operations.abandon_receives_from(number);
  sink.source_closed(number, false);
}

void RdmEngine::check_sources(link::InboxSink& sink) {
  link::InboxSink* const before = std::exchange(shared_->sink, &sink);
  flows_->tidy_up();
  shared_->sink = before;
}

link::Inbox::Activity RdmEngine::activity() const {
  if (flows_->emission().active()) return link::Inbox::Activity::kHigh;
  return flows_->contexts().any() ? link::Inbox::Activity::kLow : link::Inbox::Activity::kNone;
}

os::Time RdmEngine::fall_asleep() {
  shared_->now = shared_->host.now();
  Emission& emission = flows_->emission();
  emission.emit(true);
  connections_->advance();
  if (emission.has_to_emit() || !shared_->leaving.refused.empty()) return os::Time::min();
  return std::min({emission.due(), connections_->due(), pairs_->due(), flows_->contexts().due()});
}

bool RdmEngine::has_ended_receives() const { return !shared_->ended_receives.empty(); }

void RdmEngine::begin_closing() {
  shared_->closing = true;
  flows_->contexts().each([](const Context& context) {
    if (context.in != nullptr) context.in->target().forget_places();
  });
  shared_->named_operations.forget_buffers();
}

bool RdmEngine::quiet() const {
  bool quiet = true;
  flows_->contexts().each([&](const Context& context) {
    quiet = quiet && (context.out == nullptr || !context.out->queue().owes());
  });
  return quiet;
}

void RdmEngine::disconnect_all(link::InboxSink& sink) {
  shared_->sink = &sink;
  flows_->emission().emit(true);
  pairs_->disconnect_all();
  flows_->disconnect_all();
}

void RdmEngine::take(const roce::PacketArrival& arrival) {
  if (arrival.packet.destination == wire::kCmQpn) {
    return connections_->take(arrival);
  }
  if (wire::transport_of(arrival.packet.opcode) != wire::Transport::kReliableDatagram) {
    shared_->stats.add(Stat::kUnknownQp);
    return;
  }
  take_of_flow(arrival.packet, arrival);
}

void RdmEngine::take_of_flow(const wire::Packet& packet, const roce::PacketArrival& arrival) {
  Context* context = flows_->contexts().find(packet.end_to_end_context);
  const bool request = wire::layout_of(packet.opcode).request;
  if (context == nullptr || (request ? context->in == nullptr : context->out == nullptr)) {
    shared_->stats.add(Stat::kUnknownFlow);
    if (request) connections_->reject_unknown(arrival);
    return;
  }
  const roce::Path& path = request ? context->in->path() : context->out->flow().path();
  if (!(path.to == arrival.from)) {
    shared_->stats.add(Stat::kWrongPeer);
  } else if (request && packet.queue_key != shared_->me.queue_key) {
    shared_->stats.add(Stat::kQkeyViolations);
  } else {
    shared_->stats.add(request ? Stat::kRequests : Stat::kResponses);
    if (arrival.marked) [[unlikely]]
      take_mark(*context, request);
    if (touched_ != context->number) {
      settle();
      touched_ = context->number;
    }
    if (request) return context->in->take(packet, shared_->now);
    context->out->take(packet, shared_->now);
  }
}

// Called after a run of packets for one context: it may have something to send now.
void RdmEngine::settle() {
  Context* context = flows_->contexts().find(std::exchange(touched_, 0));
  if (context == nullptr) return;
  const os::Time next = context->due();
  if (context->out != nullptr || next != os::Time::max()) {
    flows_->emission().activate(*context, next);
  }
}

// The requester controls the window: a marked answer concerns this end, a marked request the peer.
void RdmEngine::take_mark(const Context& context, bool request) {
  shared_->stats.add(Stat::kEcnMarked);
  if (!request) return context.out->marked(shared_->now);
  const RdmReceiver& in = *context.in;
  shared_->output.send_cnp(in.path(), in.peer_queue_pair(),
                           static_cast<std::uint32_t>(in.identity()), shared_->now);
}

// The headers of a CNP name no flow, and its source address can be forged. It counts only with a
// part of the flow's identity, which this end has drawn and told its peer alone.
void RdmEngine::take_cnp(const roce::PacketArrival& arrival) {
  const bool mine = arrival.packet.destination == shared_->me.queue_pair;
  RdmSender* marked = nullptr;
  flows_->each_out(arrival.from, [&](RdmSender& out) {
    const auto flow_identity = static_cast<std::uint32_t>(out.flow().identity());
    const bool its = out.flow().is_open() &&
                     flow_identity == roce::CongestionNotifier::flow_identity_of(arrival.packet);
    if (its) marked = &out;
  });
  if (!mine || marked == nullptr) return shared_->stats.add(Stat::kUnknownFlow);
  shared_->stats.add(Stat::kCnpsHandled);
  marked->marked(shared_->now);
}

// The kernel's path MTU is used, not the one in the ICMP error, which can be forged.
void RdmEngine::path_changed(const os::SocketAddress& peer) { flows_->look_at_path(peer); }

// An ICMP error can be forged. That of a live connection starts a probe; before the REP there is
// none to probe.
void RdmEngine::unreachable(const os::UdpError& error) {
  if (error.what != os::UdpError::What::kPortUnreachable) return;
  RdmSender* const out = flows_->out_to(error.peer);
  if (out != nullptr && out->flow().count_unreachable()) out->lose(link::PeerState::kDied);
  connections_->suspect(error.peer);
}

}  // namespace weft::rdm
