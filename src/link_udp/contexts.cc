// SPDX-License-Identifier: BSD-2-Clause
// Which flows does an endpoint have, and when do they end?
#include <algorithm>
#include <cerrno>
#include <utility>

#include "os/runtime_dir.h"
#include "os/udp_path.h"
#include "roce/route.h"
#include "station_hub.h"

namespace weft::udp {
namespace {

// A number is an index and a part that differs each time, so that a late packet finds no
// later context.
constexpr std::uint32_t kIndexBits = 16;
constexpr std::uint32_t kMostContexts = (1U << kIndexBits) - 1;

// So much later it is noticed that a flow has nothing to do any more.
constexpr auto kRest = std::chrono::milliseconds(1);

constexpr std::uint32_t index_of(std::uint32_t number) { return (number & kMostContexts) - 1; }

}  // namespace

StationHub::Context& StationHub::new_context() {
  if (options_.met && !closing_) options_.met();
  auto fresh = std::make_unique<Context>();
  if (free_.empty()) {
    contexts_.emplace_back();
    free_.reserve(contexts_.capacity());  // so that destroy() needs no memory
    free_.push_back(static_cast<std::uint32_t>(contexts_.size() - 1));
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  contexts_[index] = std::move(fresh);
  const auto random = static_cast<std::uint32_t>(os::random_number());
  contexts_[index]->number = ((index + 1) | random << kIndexBits) & Psn::kMask;
  contexts_[index]->used = now_;
  watch(*contexts_[index], now_);
  return *contexts_[index];
}

// One is kept back for what goes nowhere.
bool StationHub::room_for_context() const {
  return contexts_.size() + 1 < kMostContexts || free_.size() > 1;
}

StationHub::Context* StationHub::find_context(std::uint32_t number) {
  const std::uint32_t index = index_of(number);
  if (index >= contexts_.size() || contexts_[index] == nullptr) return nullptr;
  return contexts_[index]->number == number ? contexts_[index].get() : nullptr;
}

// A sleeping thread does not see new work: the bell wakes it to continue that work.
void StationHub::activate(std::uint32_t number, os::Time due) {
  if (std::exchange(asleep_, false)) port_->ring();
  emit_at_ = std::min({emit_at_, due, now_ + kRest});
  Context* context = find_context(number);
  if (context == nullptr || context->active) return;
  context->active = true;
  active_.push_back(number);
  hasten(*context);
}

// Flows of one peer have one path, so that their packets share trains.
std::shared_ptr<const roce::Path> StationHub::path_between(const os::SocketAddress& from,
                                                           const os::SocketAddress& to) {
  const auto found = peers_.find(to);
  auto known = found != peers_.end() ? found->second.path.lock() : nullptr;
  if (known != nullptr && known->from == from) return known;
  auto path =
      std::make_shared<const roce::Path>(roce::Path{from, to, roce::route_between(from, to)});
  if (found != peers_.end()) found->second.path = path;
  return path;
}

RdmSender* StationHub::out_to(const os::SocketAddress& peer) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return nullptr;
  Context* context = find_context(found->second.out);
  if (context == nullptr || context->out->state() == RdmSender::State::kLost) return nullptr;
  return context->out.get();
}

std::vector<RdmReceiver*> StationHub::in_from(const os::SocketAddress& peer) {
  std::vector<RdmReceiver*> channels;
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return channels;
  for (const std::uint32_t number : found->second.in) {
    channels.push_back(find_context(number)->in.get());
  }
  return channels;
}

void StationHub::forget(const os::SocketAddress& peer) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  if (found->second.out == 0 && found->second.in.empty()) peers_.erase(found);
}

// Of what the system says, what is known of the way by now.
std::size_t StationHub::carries(const os::SocketAddress& peer, std::size_t path_mtu) {
  if (const RdmSender* out = out_to(peer)) path_mtu = std::min(path_mtu, out->carries());
  for (const RdmReceiver* in : in_from(peer)) {
    path_mtu = std::min(path_mtu, in->rep().me.path_mtu);
  }
  return path_mtu;
}

Result<RdmSender*> StationHub::open_out(const os::SocketAddress& peer) {
  if (RdmSender* out = out_to(peer)) return out;
  const auto path = roce::path_from(port_->address(), peer);
  if (!path) return path.error();
  if (!room_for_context()) return Error{EUSERS, "too many peers"};
  const std::size_t path_mtu =
      carries(peer, roce::path_mtu_within(path.value().mtu, peer.family()));
  Context& context = new_context();
  peers_[peer].out = context.number;
  context.out = std::make_unique<RdmSender>(*this, context.number,
                                            path_between(path.value().source, peer), path_mtu);
  activate(*context.out);
  return context.out.get();
}

// What cannot be told to a peer is lost with the way to it.
RdmSender& StationHub::return_path(const RdmReceiver& channel) {
  auto out = open_out(channel.path().to);
  if (out) return *out.value();
  if (Context* nowhere = find_context(nowhere_)) return *nowhere->out;
  Context& context = new_context();
  nowhere_ = context.number;
  context.out = std::make_unique<RdmSender>(
      *this, context.number, path_between(channel.path().from, channel.path().to), 256);
  context.out->lose(link::PeerState::kDied);
  return *context.out;
}

// The first look spares the fast path the second, and never decides otherwise.
bool StationHub::owes_too_much(const RdmReceiver& channel) {
  constexpr std::size_t kAnswer = link::kAnswerCost + kMaxAtomicBytes;
  if (message_memory_.is_plentiful(kAnswer)) return false;
  const RdmSender* out = out_to(channel.path().to);
  return out != nullptr ? !out->may_answer() : message_memory_.limit() < kAnswer;
}

RdmReceiver* StationHub::source(std::uint32_t number) const {
  const std::size_t place = number - options_.first_source;
  if (place >= sources_.size() || sources_[place] == 0) return nullptr;
  return contexts_[index_of(sources_[place])]->in.get();
}

void StationHub::destroy(std::unique_ptr<Context>& context) {
  count_in(taken_, *context);
  const std::uint32_t index = index_of(context->number);
  context.reset();
  free_.push_back(index);
}

void StationHub::close_source(RdmReceiver& channel, bool died) {
  const std::uint32_t number = channel.number();
  const bool known = !channel.is_shut();
  Context* context = find_context(channel.rep().me.context);
  sources_[number - options_.first_source] = 0;
  const os::SocketAddress peer = channel.path().to;
  std::erase(peers_[peer].in, context->number);
  forget(peer);
  destroy(contexts_[index_of(context->number)]);
  abandon_receives_from(number);
  if (known) sink_->source_closed(number, died);
}

// What is still received goes nowhere: the program has been told that its buffers are its own
// again.
void StationHub::forget_places() {
  for (const auto& context : contexts_) {
    if (context != nullptr && context->in != nullptr) context->in->forget_places();
  }
  for (const auto& [exchange, operation] : exchanges_) {
    if (operation->takes) operation->count = 0;
  }
}

// No peer writes to them any more.
void StationHub::abandon_receives_from(std::uint32_t source) {
  std::vector<Operation*> receives;
  for (const auto& [exchange, operation] : exchanges_) {
    if (operation->takes && operation->source == source) receives.push_back(operation);
  }
  for (Operation* receive : receives) receive->channel->abandon(*receive);
}

void StationHub::close_context(Context& context) {
  if (context.out != nullptr) context.out->send_disconnect();
  if (context.in != nullptr) {
    send_cm(context.in->path(),
            Disconnect{false, context.in->rep().me.connection_id,
                       context.in->req().me.connection_id, context.in->expected()});
  }
}

// Paths without use since the last call are dropped.
void StationHub::tidy_up() {
  for (auto& context : contexts_) {
    if (context == nullptr || context->out == nullptr) continue;
    const bool idle = context->out->finished() && !context->out->owes();
    if (idle && context->seen_idle) {
      close_context(*context);
      const os::SocketAddress peer = context->out->peer();
      const auto found = peers_.find(peer);
      if (found != peers_.end() && found->second.out == context->number) {
        found->second.out = 0;
        forget(peer);
      }
      destroy(context);
      continue;
    }
    context->seen_idle = idle;
  }
  port_->trains().flush();
}

void StationHub::check_sources(link::InboxSink& sink) {
  link::InboxSink* const before = std::exchange(sink_, &sink);
  tidy_up();
  sink_ = before;
}

std::uint32_t StationHub::name_exchange(Operation& operation) {
  do {
    next_exchange_ = (next_exchange_ + 1) & kNumberBits;
  } while (next_exchange_ == 0 || exchanges_.contains(next_exchange_));
  exchanges_.emplace(next_exchange_, &operation);
  return next_exchange_;
}

Operation* StationHub::find_exchange(std::uint32_t exchange, std::uint64_t flow) {
  const auto found = exchanges_.find(exchange);
  if (found == exchanges_.end()) return nullptr;
  const RdmSender& channel = *found->second->channel;
  const bool same = channel.state() == RdmSender::State::kOpen && channel.identity() == flow;
  return same ? found->second : nullptr;
}

Operation* StationHub::find_receive(std::uint32_t exchange, std::uint32_t source) {
  const auto found = exchanges_.find(exchange);
  if (found == exchanges_.end()) return nullptr;
  Operation* operation = found->second;
  return operation->takes && operation->source == source ? operation : nullptr;
}

Operation* StationHub::find_taker(const link::Offer& offer) {
  const auto found = std::ranges::find_if(exchanges_, [&](const auto& each) {
    const Operation& operation = *each.second;
    return operation.takes && operation.source == offer.source && operation.offer == offer.exchange;
  });
  return found != exchanges_.end() ? found->second : nullptr;
}

bool StationHub::waits_for(std::uint64_t station) const {
  return std::ranges::any_of(exchanges_, [station](const auto& each) {
    return each.second->channel->station() == station;
  });
}

Station::Activity StationHub::activity() const {
  if (!active_.empty()) return Activity::kHigh;
  return contexts_.empty() ? Activity::kNone : Activity::kLow;
}

}  // namespace weft::udp
