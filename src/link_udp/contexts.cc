// SPDX-License-Identifier: BSD-2-Clause
// Which flows does an endpoint have, and when do they end?
#include <algorithm>
#include <cerrno>

#include "os/runtime_dir.h"
#include "os/udp_path.h"
#include "route.h"
#include "station_hub.h"

namespace weft::udp {
namespace {

// A number is an index and a part that differs each time, so that a late packet meets nobody else.
constexpr std::uint32_t kIndexBits = 16;
constexpr std::uint32_t kMostContexts = (1U << kIndexBits) - 1;

constexpr std::uint32_t index_of(std::uint32_t number) { return (number & kMostContexts) - 1; }

}  // namespace

StationHub::Context& StationHub::new_context() {
  std::size_t index = 0;
  while (index < contexts_.size() && contexts_[index] != nullptr) ++index;
  if (index == contexts_.size()) contexts_.emplace_back();
  contexts_[index] = std::make_unique<Context>();
  const auto random = static_cast<std::uint32_t>(os::random_number());
  contexts_[index]->number =
      (static_cast<std::uint32_t>(index + 1) | random << kIndexBits) & Psn::kMask;
  return *contexts_[index];
}

// One is kept back for what goes nowhere.
bool StationHub::room_for_context() const {
  return contexts_.size() + 1 < kMostContexts ||
         std::count(contexts_.begin(), contexts_.end(), nullptr) > 1;
}

StationHub::Context* StationHub::find_context(std::uint32_t number) {
  const std::uint32_t index = index_of(number);
  if (index >= contexts_.size() || contexts_[index] == nullptr) return nullptr;
  return contexts_[index]->number == number ? contexts_[index].get() : nullptr;
}

void StationHub::activate(std::uint32_t number) {
  Context* context = find_context(number);
  if (context == nullptr || context->active) return;
  context->active = true;
  active_.push_back(number);
}

std::shared_ptr<const Way> StationHub::way_between(const os::SocketAddress& from,
                                                   const os::SocketAddress& to) {
  std::weak_ptr<const Way>& known = ways_[from.text() + " " + to.text()];
  if (auto way = known.lock()) return way;
  auto way = std::make_shared<const Way>(Way{from, to, route_between(from, to)});
  known = way;
  return way;
}

OutChannel* StationHub::out_to(const os::SocketAddress& peer) {
  const auto found = outs_.find(peer.text());
  if (found == outs_.end()) return nullptr;
  Context* context = find_context(found->second);
  if (context == nullptr || context->out->state() == OutChannel::State::kLost) return nullptr;
  return context->out.get();
}

Result<OutChannel*> StationHub::open_out(const os::SocketAddress& peer) {
  if (OutChannel* out = out_to(peer)) return out;
  const os::SocketAddress& mine = socket_.address();
  if (peer.family() != mine.family()) {
    return Error{EHOSTUNREACH, peer.text() + " is an address of another family"};
  }
  const auto path = os::udp_path_to(peer, mine.is_any() ? os::SocketAddress() : socket_.address());
  if (!path) return path.error();
  os::SocketAddress from = path.value().source;
  from.set_port(mine.port());
  if (!room_for_context()) return Error{EUSERS, "too many peers"};
  Context& context = new_context();
  context.out = std::make_unique<OutChannel>(*this, context.number, way_between(from, peer),
                                             path_mtu_within(path.value().mtu));
  activate(context.number);
  outs_[peer.text()] = context.number;
  return context.out.get();
}

// What cannot be told to a peer is lost with the way to it.
OutChannel& StationHub::way_back(const InChannel& channel) {
  auto out = open_out(channel.way().to);
  if (out) return *out.value();
  if (Context* nowhere = find_context(nowhere_)) return *nowhere->out;
  Context& context = new_context();
  nowhere_ = context.number;
  context.out = std::make_unique<OutChannel>(
      *this, context.number, way_between(channel.way().from, channel.way().to), 256);
  context.out->lose(link::PeerState::kDied);
  return *context.out;
}

InChannel* StationHub::source(std::uint32_t number) const {
  if (number >= sources_.size() || sources_[number] == 0) return nullptr;
  const std::uint32_t index = index_of(sources_[number]);
  return contexts_[index]->in.get();
}

void StationHub::close_source(InChannel& channel, bool died) {
  const std::uint32_t number = channel.number();
  const bool known = !channel.is_shut();
  Context* context = find_context(channel.welcome().me.context);
  sources_[number] = 0;
  contexts_[index_of(context->number)].reset();
  if (known) sink_->source_closed(number, died);
}

void StationHub::close_context(Context& context) {
  if (context.out != nullptr && context.out->state() == OutChannel::State::kOpen) {
    say(context.out->way(), Farewell{false, context.out->token(), context.out->peer_token()});
  }
  if (context.in != nullptr) {
    say(context.in->way(),
        Farewell{false, context.in->welcome().me.token, context.in->hello().me.token});
  }
}

// Ways that nobody has used since the last look are given up.
void StationHub::tidy_up() {
  for (auto& context : contexts_) {
    if (context == nullptr || context->out == nullptr) continue;
    const bool idle = context->out->finished() && !context->out->owes();
    if (idle && context->seen_idle) {
      close_context(*context);
      const auto found = outs_.find(context->out->peer().text());
      if (found != outs_.end() && found->second == context->number) outs_.erase(found);
      context.reset();
      continue;
    }
    context->seen_idle = idle;
  }
  std::erase_if(ways_, [](const auto& way) { return way.second.expired(); });
  trains_.flush();
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

Operation* StationHub::find_exchange(std::uint32_t exchange, std::uint64_t station) {
  const auto found = exchanges_.find(exchange);
  if (found == exchanges_.end()) return nullptr;
  return found->second->channel->station() == station ? found->second : nullptr;
}

// Asks peers that have not been heard of for a while whether they are there, and says the same to
// those who send: their hosts will tell when nobody is. Whoever stays silent has died.
void StationHub::probe() {
  constexpr auto kEvery = std::chrono::milliseconds(250);
  constexpr auto kSilence = std::chrono::milliseconds(500);
  constexpr auto kDeath = std::chrono::seconds(15);
  next_probe_ = now_ + kEvery;
  link::InboxSink* const sink = sink_;
  for (const auto& context : contexts_) {
    if (context == nullptr) continue;
    if (OutChannel* out = context->out.get()) {
      if (out->state() != OutChannel::State::kOpen) continue;
      const os::Time heard = out->heard();
      if (now_ - heard >= kDeath) out->lose(link::PeerState::kDied);
      if (now_ - heard >= kSilence) out->probe(now_);
      continue;
    }
    InChannel* in = context->in.get();
    if (in == nullptr || in->is_shut() || now_ - in->heard() < kSilence) continue;
    say(in->way(), in->welcome());
    if (sink != nullptr && now_ - in->heard() >= kDeath) close_source(*in, true);
  }
}

os::Time StationHub::earliest() const {
  os::Time first = contexts_.empty() ? os::Time::max() : next_probe_;
  for (const std::uint32_t number : active_) {
    const std::uint32_t index = index_of(number);
    const Context* context = index < contexts_.size() ? contexts_[index].get() : nullptr;
    if (context == nullptr) continue;
    if (context->out != nullptr) first = std::min(first, context->out->deadline());
    if (context->in != nullptr && context->in->ready()) return os::Time{};
  }
  return first;
}

}  // namespace weft::udp
