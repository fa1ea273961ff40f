// SPDX-License-Identifier: BSD-2-Clause
// What does a user of an endpoint in the simulator ask for, and what does it check?
#include "simulated_user.h"

#include <algorithm>
#include <cerrno>

namespace weft::rdm::testing {
namespace {

constexpr AtomicAction kFetchAdd{AtomicForm::kFetch, AtomicOp::kSum, AtomicType::kUint64};

// Sizes of every way that a message can go: coalesced, eager in one packet or several, by
// rendezvous.
std::size_t draw_length(Random& random) {
  const double which = std::uniform_real_distribution<>(0, 1)(random);
  if (which < 0.5) return up_to(random, 64);
  if (which < 0.7) return up_to(random, 1200);
  if (which < 0.85) return up_to(random, 4096);
  return up_to(random, 20'000);
}

std::uint64_t load(const std::byte* at) {
  std::uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

Bytes User::content(unsigned from, unsigned to, std::uint64_t tag, std::size_t length) {
  Bytes bytes(length);
  std::uint64_t state = (from * 131 + to) * 65'537 + tag * 2'654'435'761 + 1;
  for (std::byte& byte : bytes) {
    state = state * 6'364'136'223'846'793'005 + 1'442'695'040'888'963'407;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

User::User(Network& network, Regions& regions, const Habits& habits, const RdmOptions& options,
           std::uint8_t own, std::uint8_t users, std::size_t mtu, double full)
    : host(network, own, mtu, full),
      number(own),
      network_(network),
      habits_(habits),
      users_(users),
      // Keys of more than 31 bits need aliases.
      first_key_(options.first_source % 2 == 0 ? 100 : 0x1'0000'0000),
      random_(network.random()()),
      memory_(counter_at() + sizeof(std::uint64_t)),
      regions_(regions),
      registration_(regions.add(key_of(own), memory_, Access::kRemoteRead | Access::kRemoteWrite)),
      to_(users),
      from_(users) {
  const Bytes readable = content(own, own, 0, kReadable);
  std::ranges::copy(readable, memory_.begin() + static_cast<std::ptrdiff_t>(users * kForPeer));
  RdmOptions wanted = options;
  wanted.name = host.address;
  wanted.domain = kDomain;
  wanted.regions = regions.open();
  wanted.eager_limit = habits.eager_limit;
  engine_ = host.make_engine(wanted);
}

User::~User() {
  to_.clear();
  engine_.reset();
  static_cast<void>(regions_.table().remove(registration_));
}

void User::blame(const std::string& what) {
  if (wrong_.empty()) wrong_ = "user " + std::to_string(number) + ": " + what;
}

void User::meet(const std::vector<std::unique_ptr<User>>& users, bool suspects) {
  for (const auto& peer : users) {
    if (peer.get() == this) continue;
    ToPeer& to = to_[peer->number];
    to.flow = std::move(engine_->connect(peer->host.address)).value();
    if (suspects) to.flow->suspect();
    to.left = habits_.operations;
  }
}

os::Time User::turn() {
  ready_ = !happens(random_, habits_.not_ready);
  idle_turns_ = engine_->poll(*this) != 0 ? 0 : idle_turns_ + 1;
  go_on();
  bool more = false;
  for (std::uint8_t peer = 0; peer < users_; ++peer) {
    ToPeer& to = to_[peer];
    if (to.flow == nullptr) continue;
    to.flow->progress(*this);
    while (to.left != 0 && happens(random_, 0.7) && ask(peer, to)) continue;
    more = more || to.left != 0;
  }
  more = more || !incoming_.empty() || !to_acknowledge_.empty() || !ready_;
  // Where nothing comes for long, a poll in a millisecond will do.
  const unsigned most = idle_turns_ < 100 ? 20 : 1000;
  const os::Time soon = network_.now + std::chrono::microseconds(1 + up_to(random_, most));
  const bool lively = engine_->activity() == link::Inbox::Activity::kHigh;
  if (lively && !happens(random_, habits_.sleepy)) return soon;
  const os::Time due = engine_->fall_asleep();
  return more ? std::min(std::max(due, network_.now + std::chrono::microseconds(1)), soon)
              : std::max(due, network_.now + std::chrono::microseconds(1));
}

// Takes offers, acknowledges messages and withdraws some.
void User::go_on() {
  for (const auto& each : incoming_) {
    if (!each->ended && each->bytes.empty() && each->arrival.length != 0 &&
        !happens(random_, habits_.late)) {
      take(*each);
    }
  }
  std::erase_if(incoming_, [](const auto& each) { return each->ended; });
  std::erase_if(to_acknowledge_, [this](const link::Offer& offer) {
    if (happens(random_, habits_.late)) return false;
    engine_->acknowledge(offer);
    return true;
  });
  for (ToPeer& to : to_) {
    if (to.flow == nullptr || to.asked.empty() || !happens(random_, habits_.cancelled)) continue;
    Asked& asked = *to.asked[up_to(random_, to.asked.size() - 1)];
    if (asked.pending && !asked.must_arrive) to.flow->cancel(&asked, *this);
  }
}

bool User::ask(std::uint8_t peer, ToPeer& to) {
  auto asked = std::make_unique<Asked>();
  const double which = std::uniform_real_distribution<>(0, 1)(random_);
  asked->does = which < 0.7                            ? Does::kSend
                : which < 0.8 && to.next_slot < kSlots ? Does::kWrite
                : which < 0.9                          ? Does::kRead
                                                       : Does::kAdd;
  const link::Outcome outcome = asked->does == Does::kSend  ? send(peer, to, *asked)
                                : asked->does == Does::kAdd ? add(peer, to, *asked)
                                                            : access(peer, to, *asked);
  using State = link::Outcome::State;
  if (outcome.state == State::kAgain) return false;
  --to.left;
  asked->pending = outcome.state == State::kPending;
  if (outcome.state == State::kDone) asked->error = 0;
  if (outcome.state == State::kFailed) asked->error = outcome.error;
  if (asked->does == Does::kSend) ++to.next_tag;
  if (asked->does == Does::kWrite) ++to.next_slot;
  to.asked.push_back(std::move(asked));
  return true;
}

link::Outcome User::send(std::uint8_t peer, ToPeer& to, Asked& asked) {
  link::SendRequest request;
  asked.tag = to.next_tag;
  asked.bytes = content(number, peer, asked.tag, draw_length(random_));
  asked.must_arrive = !happens(random_, habits_.cancelled);
  const std::size_t half = asked.bytes.size() / 2;
  const LocalRange sges[] = {{asked.bytes.data(), half},
                             {asked.bytes.data() + half, asked.bytes.size() - half}};
  request.operation = link::MessageOperation::kTagged;
  request.until_delivered = happens(random_, 0.2);
  request.must_copy = asked.bytes.size() < 4096 && happens(random_, 0.3);
  request.tag = asked.tag;
  request.data = ~asked.tag;
  request.has_data = true;
  request.sges = sges;
  request.length = asked.bytes.size();
  request.cookie = &asked;
  return to.flow->send(request);
}

link::Outcome User::access(std::uint8_t peer, ToPeer& to, Asked& asked) {
  link::AccessRequest request;
  request.write = asked.does == Does::kWrite;
  asked.tag = to.next_slot;
  const std::uint64_t begin = request.write ? number * kForPeer + to.next_slot * kSlot
                                            : users_ * kForPeer + up_to(random_, 1000);
  const std::size_t length = 1 + up_to(random_, request.write ? kSlot - 1 : kReadable - 1001);
  asked.bytes =
      request.write ? content(number, peer, 1'000'000 + asked.tag, length) : Bytes(length);
  if (!request.write) asked.tag = begin;
  const LocalRange local{asked.bytes.data(), length};
  const std::size_t half = happens(random_, 0.5) ? length / 2 : 0;
  const RegionKey key{key_of(peer)};
  const RemoteRange ranges[] = {{begin, half, key}, {begin + half, length - half, key}};
  request.local = {&local, 1};
  request.remote = std::span(ranges).subspan(half == 0 ? 1 : 0);
  request.length = length;
  request.cookie = &asked;
  return to.flow->access(request);
}

link::Outcome User::add(std::uint8_t peer, ToPeer& to, Asked& asked) {
  static std::uint64_t one = 1;
  asked.bytes.resize(sizeof one);
  const LocalRange operand{reinterpret_cast<std::byte*>(&one), sizeof one};
  const LocalRange result{asked.bytes.data(), asked.bytes.size()};
  const RemoteRange counter{counter_at(), sizeof one, RegionKey{key_of(peer)}};
  link::AtomicRequest request;
  request.action = kFetchAdd;
  request.operand = {&operand, 1};
  request.result = {&result, 1};
  request.remote = {&counter, 1};
  request.length = sizeof one;
  request.cookie = &asked;
  return to.flow->atomic(request);
}

void User::ended(void* cookie, int error, int) {
  Asked& asked = *static_cast<Asked*>(cookie);
  if (!asked.pending) blame("an end was reported twice");
  asked.pending = false;
  asked.error = error;
}

void User::source_opened(std::uint32_t source, const os::SocketAddress& address) {
  sources_[source] = static_cast<std::uint8_t>(address.port() - 40'000);
}

void User::source_closed(std::uint32_t source, bool died) {
  ++closed_;
  if (died) dead_.insert(sources_.at(source));
  std::erase_if(to_acknowledge_, [&](const link::Offer& each) { return each.source == source; });
  for (const auto& each : incoming_) {
    if (each->arrival.source == source && each->bytes.empty()) each->ended = true;
  }
}

void User::in_order(std::uint8_t from, std::uint64_t tag) {
  FromPeer& peer = from_[from];
  if (tag <= peer.last_tag) {
    blame("message " + std::to_string(tag) + " came after " + std::to_string(peer.last_tag));
  }
  peer.last_tag = tag;
}

void User::came(std::uint8_t from, std::uint64_t tag, std::span<const std::byte> bytes) {
  if (!std::ranges::equal(bytes, content(from, number, tag, bytes.size()))) {
    blame("message " + std::to_string(tag) + " has other bytes");
  }
  if (!from_[from].received.insert(tag).second) {
    blame("message " + std::to_string(tag) + " came twice");
  }
}

bool User::arriving(const link::Arrival& arrival) {
  if (!happens(random_, habits_.placed)) return false;
  const std::uint8_t from = sources_.at(arrival.source);
  in_order(from, arrival.tag);
  incoming_.push_back(std::make_unique<Incoming>(Incoming{from, arrival, {}, {}}));
  take(*incoming_.back());
  return true;
}

void User::arrived(const link::Arrival& arrival) {
  const std::uint8_t from = sources_.at(arrival.source);
  in_order(from, arrival.tag);
  if (!arrival.has_data || arrival.data != ~arrival.tag) blame("a message came with other data");
  if (arrival.payload != nullptr) {
    came(from, arrival.tag, {arrival.payload, arrival.length});
    if (arrival.wants_ack) to_acknowledge_.push_back(arrival.offer);
    return;
  }
  incoming_.push_back(std::make_unique<Incoming>(Incoming{from, arrival, {}, {}}));
}

void User::take(Incoming& incoming) {
  const std::size_t length = incoming.arrival.length;
  incoming.bytes.resize(length - length / 3);
  incoming.rest.resize(length / 3);
  const LocalRange sges[] = {{incoming.bytes.data(), incoming.bytes.size()},
                             {incoming.rest.data(), incoming.rest.size()}};
  engine_->accept(*this, incoming.arrival.offer, sges, length, &incoming);
}

void User::received(void* cookie, int error) {
  Incoming& incoming = *static_cast<Incoming*>(cookie);
  if (incoming.ended) blame("a receive ended twice");
  incoming.ended = true;
  if (error != 0) return;
  incoming.bytes.insert(incoming.bytes.end(), incoming.rest.begin(), incoming.rest.end());
  came(incoming.from, incoming.arrival.tag, incoming.bytes);
}

void User::withdrawn(const link::Offer& offer) {
  for (const auto& each : incoming_) {
    const link::Offer& its = each->arrival.offer;
    const bool same = its.source == offer.source && its.rendezvous_id == offer.rendezvous_id;
    if (same && each->bytes.empty()) each->ended = true;
  }
}

bool User::over() const {
  return engine_->quiet() && incoming_.empty() && to_acknowledge_.empty() &&
         std::ranges::all_of(to_, [](const ToPeer& to) {
           return to.flow == nullptr ||
                  (to.left == 0 && std::ranges::none_of(to.asked, &Asked::pending));
         });
}

std::size_t User::failed() const {
  std::size_t count = 0;
  for (const ToPeer& to : to_) {
    count += static_cast<std::size_t>(
        std::ranges::count_if(to.asked, [](const auto& each) { return each->error > 0; }));
  }
  return count;
}

bool User::knows_dead(std::uint8_t user) const {
  return dead_.contains(user) || from_[user].last_tag == 0;
}

void User::judge(const User& peer) {
  const FromPeer& from = from_[peer.number];
  std::uint64_t adds = 0;
  for (const auto& asked : peer.to_[number].asked) {
    const bool withdrawn = asked->error == ECANCELED;
    if (asked->error != 0 && !withdrawn) {
      blame("work failed: " + std::to_string(asked->error));
    } else if (asked->does == Does::kSend && from.received.contains(asked->tag) == withdrawn) {
      blame("message " + std::to_string(asked->tag) +
            (withdrawn ? " came all the same" : " is lost"));
    } else if (asked->does == Does::kWrite) {
      const auto at = memory_.begin() +
                      static_cast<std::ptrdiff_t>(peer.number * kForPeer + asked->tag * kSlot);
      if (!std::equal(asked->bytes.begin(), asked->bytes.end(), at)) blame("a write is not there");
    } else if (asked->does == Does::kRead) {
      const auto at = memory_.begin() + static_cast<std::ptrdiff_t>(asked->tag);
      if (!std::equal(asked->bytes.begin(), asked->bytes.end(), at))
        blame("a read got other bytes");
    }
    if (asked->does == Does::kAdd) ++adds;
  }
  adds_judged_ += adds;
}

void User::judge_counter() {
  if (load(memory_.data() + counter_at()) != adds_judged_) blame("additions are lost or doubled");
}

}  // namespace weft::rdm::testing
