// SPDX-License-Identifier: BSD-2-Clause
// Which flows does an endpoint have with which peers, and when do they end?
#include "flow_table.h"

#include <algorithm>
#include <cerrno>

#include "roce/route.h"

namespace weft::rdm {

std::shared_ptr<const roce::Path> FlowTable::path_between(const os::SocketAddress& from,
                                                          const os::SocketAddress& to) {
  const auto found = peers_.find(to);
  auto known = found != peers_.end() ? found->second.path.lock() : nullptr;
  if (known != nullptr && known->from == from) return known;
  auto path =
      std::make_shared<const roce::Path>(roce::Path{from, to, roce::route_between(from, to)});
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

void FlowTable::forget(const os::SocketAddress& peer) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  if (found->second.out == 0 && found->second.in.empty()) peers_.erase(found);
}

std::size_t FlowTable::path_mtu_to(const os::SocketAddress& peer) const {
  const auto path = shared_.host.path_to(peer);
  return roce::path_mtu_within(path ? path.value().mtu : 0, peer.family());
}

// Of what the system says, what is known of the path by now.
std::size_t FlowTable::carries(const os::SocketAddress& peer, std::size_t path_mtu) const {
  if (const RdmSender* out = out_to(peer)) path_mtu = std::min(path_mtu, out->carries());
  for (const RdmReceiver* in : in_from(peer)) {
    path_mtu = std::min(path_mtu, in->rep().me.path_mtu);
  }
  return path_mtu;
}

void FlowTable::narrow(const os::SocketAddress& peer, std::size_t path_mtu) {
  if (RdmSender* out = out_to(peer)) out->narrow(path_mtu);
  for (RdmReceiver* in : in_from(peer)) {
    if (in->suggest(path_mtu)) emission_.send_cm(in->path(), in->rep());
  }
}

Result<RdmSender*> FlowTable::open_out(const os::SocketAddress& peer) {
  if (RdmSender* out = out_to(peer)) return out;
  const auto path = shared_.host.path_to(peer);
  if (!path) return path.error();
  if (!contexts_.has_room()) return Error{EUSERS, "too many peers"};
  const std::size_t path_mtu =
      carries(peer, roce::path_mtu_within(path.value().mtu, peer.family()));
  Context& context = contexts_.create();
  peers_[peer].out = context.number;
  context.out = std::make_unique<RdmSender>(shared_, context.number,
                                            path_between(path.value().source, peer), path_mtu);
  emission_.activate(context.number);
  return context.out.get();
}

void FlowTable::open_in(const ConnReq& req, const roce::Path& back) {
  const std::size_t path_mtu = carries(back.to, path_mtu_to(back.to));
  const auto place = std::find(sources_.begin(), sources_.end(), 0U) - sources_.begin();
  const auto source = shared_.options.first_source + static_cast<std::uint32_t>(place);
  if (static_cast<std::size_t>(place) == sources_.size()) sources_.push_back(0);
  Context& context = contexts_.create();
  peers_[back.to].in.push_back(context.number);
  ConnRep rep;
  rep.connection_id = req.me.connection_id;
  rep.me = shared_.me;
  rep.me.connection_id = static_cast<std::uint32_t>(shared_.host.random()) | 1;
  rep.me.context = context.number;
  rep.me.path_mtu = std::min(req.me.path_mtu, path_mtu);
  rep.path_mtu = std::min(req.path_mtu, rep.me.path_mtu);
  rep.changes = req.changes;
  rep.first = Psn(static_cast<std::uint32_t>(shared_.host.random()));
  context.in =
      std::make_unique<RdmReceiver>(shared_, req, rep, path_between(back.from, back.to), source);
  context.in->life().hear(shared_.now);
  sources_[static_cast<std::size_t>(place)] = context.number;
  const bool named = !req.name.is_any() && req.name.port() == back.to.port();
  shared_.sink->source_opened(source, named ? req.name : back.to);
  emission_.send_cm(back, rep);
  if (!req.early_data.empty()) context.in->target().take_early_data(req.early_data);
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
  Context* context = contexts_.find(channel.rep().me.context);
  sources_[number - shared_.options.first_source] = 0;
  const os::SocketAddress peer = channel.path().to;
  std::erase(peers_[peer].in, context->number);
  forget(peer);
  contexts_.destroy(*context);
  shared_.exchanges.abandon_receives_from(number);
  if (known) shared_.sink->source_closed(number, died);
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
  if (context.out != nullptr) context.out->send_disconnect();
  if (context.in == nullptr) return;
  const RdmReceiver& in = *context.in;
  emission_.send_cm(in.path(), Disconnect{false, in.rep().me.connection_id,
                                          in.req().me.connection_id, in.expected()});
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
