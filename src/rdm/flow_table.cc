// SPDX-License-Identifier: BSD-2-Clause
// Which flows does an endpoint have with which peers, and when do they end?
#include "flow_table.h"

#include <algorithm>
#include <cerrno>

#include "roce/route.h"

namespace weft::rdm {
namespace {

std::size_t path_mtu_of(const Result<os::UdpPath>& path, const os::SocketAddress& peer) {
  return roce::path_mtu_within(path ? path.value().mtu : 0, peer.family());
}

}  // namespace

FlowTable::FlowTable(Shared& shared)
    : shared_(shared),
      emission_(shared, contexts_),
      recent_paths_(
          [&shared](const os::SocketAddress& peer) { return shared.host.path_to(peer); }) {
  shared.flows = this;
}

std::shared_ptr<const roce::Path> FlowTable::path_between(const os::SocketAddress& from,
                                                          const os::SocketAddress& to) {
  auto known = known_path(to);
  if (known != nullptr && known->from == from) return known;
  auto path =
      std::make_shared<const roce::Path>(roce::Path{from, to, roce::route_between(from, to)});
  const auto found = peers_.find(to);
  if (found != peers_.end()) found->second.path = path;
  return path;
}

RdmSender* FlowTable::out_to(const os::SocketAddress& peer) const {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return nullptr;
  Context* context = contexts_.find(found->second.out);
  if (context == nullptr || context->out->flow().phase() == FlowPhase::kLost) return nullptr;
  return context->out.get();
}

std::vector<RdmReceiver*> FlowTable::in_from(const os::SocketAddress& peer) const {
  std::vector<RdmReceiver*> receivers;
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return receivers;
  for (const std::uint32_t number : found->second.in) {
    receivers.push_back(contexts_.find(number)->in.get());
  }
  return receivers;
}

std::shared_ptr<const roce::Path> FlowTable::known_path(const os::SocketAddress& peer) const {
  const auto found = peers_.find(peer);
  return found != peers_.end() ? found->second.path.lock() : nullptr;
}

std::shared_ptr<const roce::Path> FlowTable::new_path(const os::UdpPath& path,
                                                      const os::SocketAddress& peer) {
  const os::SocketAddress& name = shared_.options.name;
  return path_between(name.is_any() ? path.source : name, peer);
}

Result<std::shared_ptr<const roce::Path>> FlowTable::path_to(const os::SocketAddress& peer) {
  if (auto known = known_path(peer)) return known;
  const auto path = recent_paths_.find(peer, shared_.host.now());
  if (!path) return path.error();
  return new_path(path.value(), peer);
}

RdmReceiver* FlowTable::find_in(const os::SocketAddress& peer, const Continued& flow) const {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return nullptr;
  for (const auto* numbers : {&found->second.in, &found->second.pairs}) {
    for (const std::uint32_t number : *numbers) {
      RdmReceiver* const in = contexts_.find(number)->in.get();
      if (in == nullptr || in->identity() != flow.identity) continue;
      if (in->connection() == flow.connection) return in;
    }
  }
  return nullptr;
}

void FlowTable::add_pair(const std::shared_ptr<const roce::Path>& path, std::uint32_t context) {
  PeerContexts& peer_contexts = peers_[path->to];
  peer_contexts.pairs.push_back(context);
  peer_contexts.path = path;
}

void FlowTable::remove_pair(const os::SocketAddress& peer, std::uint32_t context) {
  std::erase(peers_[peer].pairs, context);
  forget(peer);
}

void FlowTable::forget(const os::SocketAddress& peer) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  const PeerContexts& peer_flows = found->second;
  const bool none = peer_flows.out == 0 && peer_flows.in.empty() && peer_flows.pairs.empty();
  if (none) peers_.erase(found);
}

std::size_t FlowTable::path_mtu_to(const os::SocketAddress& peer) const {
  return path_mtu_of(shared_.host.path_to(peer), peer);
}

std::size_t FlowTable::carries(const os::SocketAddress& peer, std::size_t path_mtu) const {
  if (const RdmSender* out = out_to(peer)) path_mtu = std::min(path_mtu, out->carries());
  for (const RdmReceiver* in : in_from(peer)) {
    if (in->is_established()) path_mtu = std::min(path_mtu, in->path_mtu());
  }
  const auto found = peers_.find(peer);
  if (found == peers_.end() || found->second.pairs.empty()) return path_mtu;
  const Context& oldest = *contexts_.find(found->second.pairs.front());
  return oldest.out != nullptr ? std::min(path_mtu, oldest.out->carries()) : path_mtu;
}

void FlowTable::look_at_path(const os::SocketAddress& peer) {
  const auto path = shared_.host.path_to(peer);
  if (path) narrow(peer, path_mtu_of(path, peer));
}

// The sender of the flows from there hears of it by a REQ.
void FlowTable::narrow(const os::SocketAddress& peer, std::size_t path_mtu) {
  each_out(peer, [&](RdmSender& out) { out.narrow(path_mtu); });
  if (out_to(peer) != nullptr) return;
  for (const RdmReceiver* in : in_from(peer)) {
    if (in->path_mtu() > path_mtu) return static_cast<void>(open_out(peer));
  }
}

Result<PeerPath> FlowTable::path_of_flow(const os::SocketAddress& peer) {
  const auto found = recent_paths_.find(peer, shared_.host.now());
  auto path = known_path(peer);
  if (path == nullptr) {
    if (!found) return found.error();
    path = new_path(found.value(), peer);
  }
  if (!contexts_.has_room()) return Error{EUSERS, "too many peers"};
  return PeerPath{std::move(path), carries(peer, path_mtu_of(found, peer))};
}

Result<RdmSender*> FlowTable::open_out(const os::SocketAddress& peer) {
  if (RdmSender* out = out_to(peer)) return out;
  const auto found = path_of_flow(peer);
  if (!found) return found.error();
  const auto& [path, path_mtu] = found.value();
  Context& context = contexts_.create();
  peers_[peer].out = context.number;
  context.out = std::make_unique<RdmSender>(shared_, context.number, path, path_mtu);
  emission_.activate(context.number);
  return context.out.get();
}

RdmReceiver& FlowTable::open_in(const FlowRequest& request, const cm::CmEvent& event,
                                std::shared_ptr<const roce::Path> path, FlowReply& reply) {
  const os::SocketAddress& peer = event.remote.address;
  const std::size_t path_mtu = carries(peer, request.me.path_mtu);
  Context& context = contexts_.create();
  const std::uint32_t number = sources_.name(context.number);
  PeerContexts& peer_contexts = peers_[peer];
  peer_contexts.in.push_back(context.number);
  peer_contexts.path = path;
  reply.me = shared_.me;
  reply.me.context = context.number;
  reply.me.path_mtu = path_mtu;
  reply.first = Psn(static_cast<std::uint32_t>(shared_.host.random()));
  const RequestSource source{number, request.me.endpoint_id, event.mad->transaction,
                             std::move(path), 0};
  context.in = std::make_unique<RdmReceiver>(shared_, request.me, reply, event.id, source);
  shared_.sink->source_opened(number, peer);
  return *context.in;
}

// What cannot be told to a peer is lost with the path to it.
WorkQueue& FlowTable::return_path(const RequestSource& source) {
  if (Context* pair = contexts_.find(source.pair)) return pair->out->queue();
  const roce::Path& path = *source.path;
  auto out = open_out(path.to);
  if (out) return out.value()->queue();
  if (Context* discarding = contexts_.find(discarding_)) return discarding->out->queue();
  Context& context = contexts_.create();
  discarding_ = context.number;
  context.out =
      std::make_unique<RdmSender>(shared_, context.number, path_between(path.from, path.to), 256);
  context.out->lose(link::PeerState::kDied);
  return context.out->queue();
}

// The first look spares the fast path the second, and never decides otherwise.
bool FlowTable::owes_too_much(const RequestSource& source) const {
  constexpr std::size_t kAnswer = link::kAnswerCost + kMaxAtomicBytes;
  if (shared_.message_memory.is_plentiful(kAnswer)) return false;
  const Context* const pair = contexts_.find(source.pair);
  const RdmSender* out = pair != nullptr ? pair->out.get() : out_to(source.path->to);
  return out != nullptr ? !out->operations().may_answer()
                        : shared_.message_memory.limit() < kAnswer;
}

RdmReceiver* FlowTable::source(std::uint32_t number) const {
  const Context* const context = contexts_.find(sources_.context_of(number));
  return context != nullptr ? context->in.get() : nullptr;
}

void FlowTable::close_source(RdmReceiver& receiver, bool died) {
  const std::uint32_t number = receiver.number();
  const bool known = !receiver.target().is_shut();
  receiver.disconnect({receiver.expected()});
  Context* context = contexts_.find(receiver.context());
  sources_.forget(number);
  const os::SocketAddress peer = receiver.path().to;
  std::erase(peers_[peer].in, context->number);
  forget(peer);
  contexts_.destroy(*context);
  shared_.named_operations.abandon_receives_from(number);
  if (known) shared_.sink->source_closed(number, died);
}

void FlowTable::refuse(RdmReceiver& receiver) {
  receiver.target().shut();
  receiver.disconnect({{}, true});
  shared_.leaving.refused.push_back(receiver.number());
  shared_.host.wake();
}

void FlowTable::close_leaving() {
  if (shared_.leaving.dead.empty() && shared_.leaving.refused.empty()) return;
  for (const DeadEndpoint& dead : std::exchange(shared_.leaving.dead, {})) {
    for (RdmReceiver* in : in_from(dead.address)) {
      if (in->endpoint_id() == dead.endpoint_id) close_source(*in, true);
    }
  }
  for (const std::uint32_t number : std::exchange(shared_.leaving.refused, {})) {
    if (RdmReceiver* in = source(number)) close_source(*in, false);
  }
}

void FlowTable::close(Context& context) {
  if (context.out != nullptr) context.out->flow().disconnect();
  if (context.in != nullptr) context.in->disconnect({context.in->expected()});
}

void FlowTable::disconnect_all() {
  contexts_.each([this](Context& context) {
    if (context.pair == nullptr) close(context);
  });
  shared_.output.flush();
}

void FlowTable::tidy_up() {
  contexts_.each([this](Context& context) {
    if (context.out == nullptr || context.pair != nullptr) return;
    const bool idle = context.out->finished() && !context.out->queue().owes();
    const bool was_idle = std::exchange(context.seen_idle, idle);
    if (!idle || !was_idle) return;
    close(context);
    const os::SocketAddress peer = context.out->flow().peer();
    const auto found = peers_.find(peer);
    if (found != peers_.end() && found->second.out == context.number) {
      found->second.out = 0;
      forget(peer);
    }
    contexts_.destroy(context);
  });
  shared_.output.flush();
}

}  // namespace weft::rdm
