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
  std::vector<RdmReceiver*> channels;
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return channels;
  for (const std::uint32_t number : found->second.in) {
    channels.push_back(contexts_.find(number)->in.get());
  }
  return channels;
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
  const auto path = shared_.host.path_to(peer);
  if (!path) return path.error();
  return new_path(path.value(), peer);
}

RdmReceiver* FlowTable::find_in(const os::SocketAddress& peer, std::uint64_t identity) const {
  for (RdmReceiver* in : in_from(peer)) {
    if (in->identity() == identity) return in;
  }
  return nullptr;
}

void FlowTable::forget(const os::SocketAddress& peer) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  if (found->second.out == 0 && found->second.in.empty()) peers_.erase(found);
}

std::size_t FlowTable::path_mtu_to(const os::SocketAddress& peer) const {
  return path_mtu_of(shared_.host.path_to(peer), peer);
}

std::size_t FlowTable::carries(const os::SocketAddress& peer, std::size_t path_mtu) const {
  if (const RdmSender* out = out_to(peer)) path_mtu = std::min(path_mtu, out->carries());
  for (const RdmReceiver* in : in_from(peer)) {
    if (in->is_established()) path_mtu = std::min(path_mtu, in->path_mtu());
  }
  return path_mtu;
}

void FlowTable::look_at_path(const os::SocketAddress& peer) {
  const auto path = shared_.host.path_to(peer);
  if (path) narrow(peer, path_mtu_of(path, peer));
}

// The sender of the flows from there hears of it by a REQ.
void FlowTable::narrow(const os::SocketAddress& peer, std::size_t path_mtu) {
  if (RdmSender* out = out_to(peer)) return out->narrow(path_mtu);
  for (const RdmReceiver* in : in_from(peer)) {
    if (in->path_mtu() > path_mtu) return static_cast<void>(open_out(peer));
  }
}

Result<RdmSender*> FlowTable::open_out(const os::SocketAddress& peer) {
  if (RdmSender* out = out_to(peer)) return out;
  const auto found = shared_.host.path_to(peer);  // several system calls
  auto path = known_path(peer);
  if (path == nullptr) {
    if (!found) return found.error();
    path = new_path(found.value(), peer);
  }
  if (!contexts_.has_room()) return Error{EUSERS, "too many peers"};
  const std::size_t path_mtu = carries(peer, path_mtu_of(found, peer));
  Context& context = contexts_.create();
  peers_[peer].out = context.number;
  context.out = std::make_unique<RdmSender>(shared_, context.number, std::move(path), path_mtu);
  emission_.activate(context.number);
  return context.out.get();
}

RdmReceiver& FlowTable::open_in(const FlowRequest& request, const cm::CmEvent& event,
                                std::shared_ptr<const roce::Path> path, FlowReply& reply) {
  const os::SocketAddress& peer = event.remote.address;
  const std::size_t path_mtu = carries(peer, request.me.path_mtu);
  const auto place = std::find(sources_.begin(), sources_.end(), 0U) - sources_.begin();
  const auto number = shared_.options.first_source + static_cast<std::uint32_t>(place);
  if (static_cast<std::size_t>(place) == sources_.size()) sources_.push_back(0);
  Context& context = contexts_.create();
  Neighbour& neighbour = peers_[peer];
  neighbour.in.push_back(context.number);
  neighbour.path = path;
  reply.me = shared_.me;
  reply.me.context = context.number;
  reply.me.path_mtu = path_mtu;
  reply.first = Psn(static_cast<std::uint32_t>(shared_.host.random()));
  const RequestSource source{number, request.me.station, event.mad->transaction, std::move(path)};
  context.in = std::make_unique<RdmReceiver>(shared_, request.me, reply, event.id, source);
  sources_[static_cast<std::size_t>(place)] = context.number;
  shared_.sink->source_opened(number, peer);
  return *context.in;
}

// What cannot be told to a peer is lost with the path to it.
WorkQueue& FlowTable::return_path(const roce::Path& path) {
  auto out = open_out(path.to);
  if (out) return out.value()->queue();
  if (Context* nowhere = contexts_.find(nowhere_)) return nowhere->out->queue();
  Context& context = contexts_.create();
  nowhere_ = context.number;
  context.out =
      std::make_unique<RdmSender>(shared_, context.number, path_between(path.from, path.to), 256);
  context.out->lose(link::PeerState::kDied);
  return context.out->queue();
}

// The first look spares the fast path the second, and never decides otherwise.
bool FlowTable::owes_too_much(const os::SocketAddress& peer) const {
  constexpr std::size_t kAnswer = link::kAnswerCost + kMaxAtomicBytes;
  if (shared_.message_memory.is_plentiful(kAnswer)) return false;
  const RdmSender* out = out_to(peer);
  return out != nullptr ? !out->operations().may_answer()
                        : shared_.message_memory.limit() < kAnswer;
}

RdmReceiver* FlowTable::source(std::uint32_t number) const {
  const std::size_t place = number - shared_.options.first_source;
  if (place >= sources_.size() || sources_[place] == 0) return nullptr;
  return contexts_.find(sources_[place])->in.get();
}

void FlowTable::close_source(RdmReceiver& channel, bool died) {
  const std::uint32_t number = channel.number();
  const bool known = !channel.target().is_shut();
  channel.disconnect({channel.expected()});
  Context* context = contexts_.find(channel.context());
  sources_[number - shared_.options.first_source] = 0;
  const os::SocketAddress peer = channel.path().to;
  std::erase(peers_[peer].in, context->number);
  forget(peer);
  contexts_.destroy(*context);
  shared_.exchanges.abandon_receives_from(number);
  if (known) shared_.sink->source_closed(number, died);
}

void FlowTable::refuse(RdmReceiver& channel) {
  channel.target().shut();
  channel.disconnect({{}, true});
  shared_.refused.push_back(channel.number());
  shared_.host.wake();
}

void FlowTable::close_refused() {
  for (const std::uint32_t number : std::exchange(shared_.refused, {})) {
    if (RdmReceiver* in = source(number)) close_source(*in, false);
  }
}

void FlowTable::bury(RdmSender& out) {
  const os::SocketAddress peer = out.flow().peer();
  const std::uint64_t station = out.flow().station();
  out.flow().abandon();
  out.lose(link::PeerState::kDied);
  for (RdmReceiver* in : in_from(peer)) {
    if (in->station() != station) continue;
    in->abandon();
    close_source(*in, true);
  }
}

void FlowTable::close_sources_of_dead() {
  if (shared_.dead_stations.empty()) return;
  for (const DeadStation& dead : std::exchange(shared_.dead_stations, {})) {
    for (RdmReceiver* in : in_from(dead.address)) {
      if (in->station() == dead.station) close_source(*in, true);
    }
  }
}

void FlowTable::close(Context& context) {
  if (context.out != nullptr) context.out->flow().disconnect();
  if (context.in != nullptr) context.in->disconnect({context.in->expected()});
}

void FlowTable::say_goodbye() {
  contexts_.each([this](Context& context) { close(context); });
  shared_.host.flush();
}

void FlowTable::tidy_up() {
  contexts_.each([this](Context& context) {
    if (context.out == nullptr) return;
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
  shared_.host.flush();
}

}  // namespace weft::rdm
