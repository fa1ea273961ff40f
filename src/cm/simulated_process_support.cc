// SPDX-License-Identifier: BSD-2-Clause
// What does a process of a simulation do when its time has come?
#include "simulated_process.h"

#include "simulated_user.h"

namespace weft::cm::testing {
namespace {

// The message has that communication id of its sender, or none (a REJ that answers a REQ).
bool is_of(ConnectionId id, const wire::CmMessage& message) {
  return std::visit(
      [id](const auto& each) {
        if constexpr (requires { each.local_id; }) {
          return each.local_id == id || each.local_id == 0;
        } else if constexpr (std::is_same_v<decltype(each), const wire::CmSidrReq&>) {
          return each.request == id;
        }
        return true;
      },
      message);
}

}  // namespace

Process::Process(Shared& all, unsigned its_number, unsigned its_life, AgentOptions options)
    : number(its_number),
      life(its_life),
      guid(options.guid),
      undecided_limit(options.packets.undecided_limit),
      shared(all) {
  options.port = address().port();
  options.mailbox = options.packets;  // the simulation's lose messages, too
  agent_ = std::make_unique<Agent>(*this, options, stats);
  for (int i = 0; i < 2; ++i) users_.push_back(std::make_unique<SimulatedUser>(*this));
}

Process::~Process() {
  dead_ = true;
  agent_.reset();
  for (auto& [id, end] : live_) end->state = End::State::kOver;
}

void Process::send(const Remote& to, ConnectionId id, std::span<const std::byte> message) {
  check(!dead_, "the end of an agent sends a message");
  const auto mad = wire::parse_cm(message.first(std::min(message.size(), wire::kMadBytes)));
  check(mad.has_value(), "a message that is malformed");
  const bool may_be_longer = mad && (std::holds_alternative<wire::CmReq>(mad->message) ||
                                     std::holds_alternative<wire::CmRep>(mad->message) ||
                                     std::holds_alternative<wire::CmRej>(mad->message));
  const std::size_t most = wire::kMadBytes + (may_be_longer ? kMaxMorePrivateData : 0);
  check(message.size() >= wire::kMadBytes && message.size() <= most, "a message's length");
  check(std::find(known_.begin(), known_.end(), to) != known_.end(),
        "a message to an address that sent none");
  check(id == 0 || (mad && is_of(id, mad->message)), "a message of another connection");
  check(!mad || !answers_forwarded(*mad), "an answer to a request that was forwarded");
  shared.network.send({address(), to.carrier}, to, false, {message.begin(), message.end()});
}

// A REJ without the id of its receiver is one of the requester, which may be this process, too.
bool Process::answers_forwarded(const wire::CmMad& mad) {
  const auto* const mra = std::get_if<wire::CmMra>(&mad.message);
  const auto* const rej = std::get_if<wire::CmRej>(&mad.message);
  const bool answers_req = (mra && mra->message == 0) || (rej && rej->message == 0);
  if (!answers_req || (rej && rej->remote_id == 0)) return false;
  const auto& ends = shared.ledger.ends();
  return std::any_of(ends.begin(), ends.end(), [&](const End& end) {
    const bool rests = end.forwarded && end.life == life && now() - end.began < undecided_limit;
    return rests && end.req.transaction == mad.transaction;
  });
}

Time Process::next() const {
  const Time action = actions_.empty() ? Time::max() : actions_.begin()->first;
  return std::min(action, agent_->due());
}

void Process::turn() {
  while (!actions_.empty() && actions_.begin()->first <= now()) {
    const auto action = std::move(actions_.begin()->second);
    actions_.erase(actions_.begin());
    action();
    settle();
  }
  if (agent_->due() > now()) return;
  agent_->advance(now());
  check(agent_->due() > now(), "advance() leaves something to do");
  settle();
}

void Process::arrive(const Parcel& parcel) {
  know(parcel.from);
  if (parcel.data) {
    take_data(parcel);
  } else {
    agent_->take(parcel.from, parcel.bytes, now());
  }
  // Sometimes a program looks for events later, and calls functions meanwhile.
  if (shared.maybe(0.8)) return settle();
  after(microseconds(shared.below(100)), [] {});
}

void Process::take_data(const Parcel& parcel) {
  const auto word = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      value |= static_cast<std::uint32_t>(parcel.bytes[at + i]) << 8 * i;
    }
    return value;
  };
  End* const end = find(word(0));
  if (end == nullptr || end->other == nullptr || end->resolves) return;
  if (end->other->number != word(4) || end->other->other != end) return;
  if (end->state != End::State::kUp && end->state != End::State::kAccepted) return;
  end->last_received = now();
  if (!end->requests) agent_->established(end->id, now());
}

void Process::report_unreachable(const Remote& peer) {
  reports_.emplace_back(peer, now());
  agent_->unreachable(peer, now());
  settle();
}

bool Process::has_report(const Remote& peer, Time since) const {
  const auto tells = [&](const auto& each) { return each.first == peer && each.second >= since; };
  return std::any_of(reports_.begin(), reports_.end(), tells);
}

bool Process::has_report_of_host(Remote peer, Time since) const {
  return std::any_of(reports_.begin(), reports_.end(), [&](const auto& each) {
    peer.address.set_port(each.first.address.port());
    return each.first == peer && each.second >= since;
  });
}

Process* Process::any_neighbour() const {
  std::vector<Process*> found;
  for (unsigned other = number % shared.hosts; other < shared.processes; other += shared.hosts) {
    Process* const process = other == number ? nullptr : shared.process(other);
    if (process != nullptr) found.push_back(process);
  }
  return found.empty() ? nullptr : found[shared.below(found.size())];
}

void Process::be_busy(unsigned count, nanoseconds period) {
  for (std::size_t i = 0; i < users_.size(); ++i) {
    users_[i]->listen(SimulatedUser::kFirstService + i);
  }
  for (unsigned i = 0; i < count; ++i) {
    after(nanoseconds(shared.below(static_cast<std::uint64_t>(period.count()))),
          [this] { any_user().call(); });
  }
}

void Process::close() {
  actions_.clear();
  for (const auto& user : users_) {
    user->close();
  }
  settle();
}

void Process::check_quiet() {
  check(agent_->connections() == 0, "connections are left");
  check(agent_->entries() == 0, "entries are left");
  check(agent_->due() == Time::max(), "a deadline is left");
}

void Process::check(bool holds, const std::string& otherwise) {
  shared.ledger.check(holds, "process " + std::to_string(number) + ": " + otherwise);
}

void Process::after(nanoseconds pause, std::function<void()> action) {
  actions_.emplace(now() + pause, std::move(action));
}

void Process::know(const Remote& peer) {
  if (std::find(known_.begin(), known_.end(), peer) == known_.end()) known_.push_back(peer);
}

void Process::enter(End& end, ConnectionId id) {
  check(id >> 16 == address().port(), "an id without the port");
  check(find(id) == nullptr, "an id that is in use");
  end.id = id;
  end.life = life;
  end.guid = guid;
  end.address = address();
  end.began = now();
  live_[id] = &end;
}

void Process::leave(End& end) {
  live_.erase(end.id);
  end.state = End::State::kOver;
}

End* Process::find(ConnectionId id) const {
  const auto found = live_.find(id);
  return found == live_.end() ? nullptr : found->second;
}

void Process::settle() {
  for (int rounds = 0; agent_->has_events(); ++rounds) {
    if (rounds == 1000) return check(false, "events without end");
    agent_->deliver();
  }
  check(agent_->connections() <= agent_->entries(), "more connections than entries");
  for (const auto& user : users_) user->check_backlogs();
}

}  // namespace weft::cm::testing
