// SPDX-License-Identifier: BSD-2-Clause
// What can messages do to a connection manager? Input: a script of calls of three agents of a host,
// of time that passes, and of messages: those of the agents, late, twice, changed or never, and
// forged ones.
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "cm/agent.h"
#include "input.h"
#include "os/loopback_support.h"
#include "wire/cm_message.h"

namespace {

using namespace weft;
using fuzz::Input;
using fuzz::require;

constexpr std::uint64_t kServices = 3;
constexpr std::size_t kParties = 3;

// A MAD that further private data may follow.
std::optional<wire::CmMad> parse(std::span<const std::byte> message) {
  return wire::parse_cm(message.first(std::min(message.size(), wire::kMadBytes)));
}

struct Message {
  std::size_t from = 0;
  std::size_t to = 0;
  std::vector<std::byte> bytes;
};

enum class Phase : std::uint8_t { kTrying, kReplied, kAsked, kQueried, kAccepted, kUp };

struct Known {
  Phase phase{};
  cm::ListenerId listener = 0;
};

// An agent and its user, which knows each id from the first event or call to the last one.
class Party final : public cm::CmHost, public cm::User {
 public:
  // `requests`: the REQs that listeners have been told of.
  Party(std::size_t number, std::deque<Message>& wire, std::deque<Message>& requests)
      : number_(number), wire_(wire), requests_(requests) {
    cm::AgentOptions options;
    options.port = port();
    options.guid = 7 + number;
    options.peer_timeout = std::chrono::seconds(5);
    agent_ = std::make_unique<cm::Agent>(*this, options, stats_);
  }
  std::uint16_t port() const { return static_cast<std::uint16_t>(40'000 + number_); }
  static cm::Remote remote(std::size_t number) {
    return {os::loopback(static_cast<std::uint16_t>(40'000 + number)), cm::Carrier::kPackets};
  }
  static std::size_t number_of(const cm::Remote& place) { return place.address.port() - 40'000U; }
  std::size_t number() const { return number_; }
  cm::Agent& agent() { return *agent_; }

  void send(const cm::Remote& to, cm::ConnectionId, std::span<const std::byte> message) override {
    require(parse(message).has_value(), "a malformed message is sent");
    require(message.size() <= wire::kMadBytes + cm::kMaxMorePrivateData, "a long message is sent");
    if (wire_.size() < 256) {
      wire_.push_back({number_, number_of(to), {message.begin(), message.end()}});
    }
  }
  std::uint64_t random() override { return random_ = random_ * 6364136223846793005 + number_; }

  void handle(const cm::CmEvent& event) override {
    using enum cm::EventKind;
    const auto found = ids_.find(event.id);
    if (event.kind == kRequest || event.kind == kResolve) {
      require(found == ids_.end(), "a request has an id that is in use");
      const Phase phase = event.kind == kRequest ? Phase::kAsked : Phase::kQueried;
      ids_[event.id] = {phase, event.listener};
      if (event.kind == kRequest) keep(event);
    } else {
      require(found != ids_.end(), "an event of an id that has ended");
      take(found->second.phase, event);
    }
    if (event.mad != nullptr) sum_ += event.mad->transaction;
    for (const std::byte byte : event.more) sum_ += static_cast<unsigned>(byte);
  }
  Time last_received(cm::ConnectionId id, void* context) override {
    const bool known = is(id, Phase::kUp) || is(id, Phase::kAccepted);
    require(known && context == this, "heard() of no connection");
    return heard_;
  }
  void call(Input& input, Time now);
  void settle() {
    for (int i = 0; agent_->has_events(); ++i) {
      require(i < 100, "events without end");
      agent_->deliver();
    }
    require(agent_->connections() <= agent_->entries(), "more connections than entries");
    require(ids_.size() <= agent_->connections(), "an id that the agent does not have");
  }
  // Ends everything.
  void close(Time now) {
    while (!listeners_.empty()) stop(now);
    for (const auto& [id, known] : ids_) agent_->disconnect(id, {}, now);
    ids_.clear();
    require(!agent_->has_events(), "events of a user that has ended everything");
  }
  // Of this agent, or none.
  cm::ConnectionId any_id(Input& input) const {
    const std::uint8_t choice = input.byte();
    if (ids_.empty() || choice >= 0xF0) return choice;
    return std::next(ids_.begin(), static_cast<std::ptrdiff_t>(choice % ids_.size()))->first;
  }

 private:
  void take(Phase& phase, const cm::CmEvent& event) {
    using enum cm::EventKind;
    if (event.kind == kReply) {
      require(phase == Phase::kTrying, "an unexpected reply");
      phase = Phase::kReplied;
    } else if (event.kind == kEstablished) {
      require(phase == Phase::kAccepted, "established without having accepted");
      phase = Phase::kUp;
    } else {
      const bool of_connection = event.kind == kDisconnected || event.kind == kPeerLost;
      require((phase == Phase::kUp) == of_connection, "the end of something else");
      require(event.kind != kUnreachable || phase == Phase::kTrying, "unreachable too late");
      ids_.erase(event.id);
    }
  }
  // With events that the user has not heard of, a call that seems wrong may be right: it makes
  // none.
  bool is(cm::ConnectionId id, Phase phase) const {
    const auto found = ids_.find(id);
    return found != ids_.end() && found->second.phase == phase;
  }
  void connect(Input& input, Time now) {
    cm::ConnectRequest request;
    const std::size_t to = input.byte() % kParties;
    request.to = remote(to);
    request.req.service = input.byte() % (kServices + 1);
    request.more.resize(input.below(300));
    const std::uint8_t choice = input.byte();
    request.watched = choice % 2 != 0;
    request.ends_unreachable = choice / 2 % 2 != 0;
    if (choice >= 0xC0) {
      request.other = remote((to + 1) % kParties);
      request.other_after = std::chrono::milliseconds(choice % 64);
    }
    request.repeats.limit = std::chrono::milliseconds(input.below(2000));
    const bool fits = request.more.size() <= cm::kMaxMorePrivateData;
    const auto id = agent_->connect(request, *this, this, now);
    require(id.ok() == fits, "the result of connect()");
    if (id) ids_[id.value()].phase = Phase::kTrying;
  }
  void accept(Input& input, Time now) {
    const cm::ConnectionId id = any_id(input);
    cm::AcceptRequest reply;
    reply.more.resize(input.below(300));
    reply.watched = input.byte() % 2 != 0;
    const bool right = is(id, Phase::kAsked);
    if (agent_->has_events() && !right) return;
    if (!agent_->accept(id, reply, *this, this, now)) return;
    require(right, "accept() without a request");
    ids_[id] = {Phase::kAccepted, 0};
  }
  void confirm(Input& input, Time now) {
    const cm::ConnectionId id = any_id(input);
    const std::vector<std::byte> data(input.below(300));
    const bool right = is(id, Phase::kReplied);
    if (agent_->has_events() && !right) return;
    if (!agent_->confirm(id, data, now)) return;
    require(right, "confirm() without a reply");
    ids_[id].phase = Phase::kUp;
  }
  void reject(Input& input, Time now) {
    const cm::ConnectionId id = any_id(input);
    const std::vector<std::byte> data(input.below(500));
    const bool right = is(id, Phase::kAsked) || is(id, Phase::kReplied);
    if (agent_->has_events() && !right) return;
    if (!agent_->reject(id, static_cast<wire::CmReason>(input.byte()), data, now)) return;
    require(right, "reject() of nothing");
    ids_.erase(id);
  }
  void forward(Input& input, Time now) {
    const cm::ConnectionId id = any_id(input);
    const bool right = is(id, Phase::kAsked);
    if (agent_->has_events() && !right) return;
    if (!agent_->forward(id, now)) return;
    require(right, "forward() of no request");
    ids_.erase(id);
  }
  // A REQ that some agent has, or any message on its way.
  void adopt(Input& input, Time now) {
    const std::uint8_t choice = input.byte();
    const std::deque<Message>& messages = choice < 0xC0 ? requests_ : wire_;
    if (messages.empty()) return;
    const Message& message = messages[choice % messages.size()];
    const auto mad = parse(message.bytes);
    if (!mad) return;
    const auto id = agent_->adopt(remote(message.from), *mad, *this, this, now);
    const bool is_req = std::holds_alternative<wire::CmReq>(mad->message);
    require(is_req || !id.ok(), "adopt() of no REQ");
    if (id) ids_[id.value()] = {Phase::kAsked, 0};
  }
  void keep(const cm::CmEvent& event) {
    const auto mad = wire::write_cm(*event.mad);
    Message message{number_of(event.remote), number_, {mad.begin(), mad.end()}};
    message.bytes.insert(message.bytes.end(), event.more.begin(), event.more.end());
    requests_.push_back(std::move(message));
    if (requests_.size() > 16) requests_.pop_front();
  }
  void resolve(Input& input, Time now) {
    wire::CmSidrReq request;
    const cm::Remote to = remote(input.byte() % kParties);
    request.service = input.byte() % (kServices + 1);
    const auto id = agent_->resolve({to, request}, *this, this, now);
    require(id.ok(), "resolve() fails");
    ids_[id.value()].phase = Phase::kTrying;
  }
  void answer(Input& input, Time now) {
    const cm::ConnectionId id = any_id(input);
    wire::CmSidrRep reply;
    reply.status = input.byte() % 6;
    const bool right = is(id, Phase::kQueried);
    if (agent_->has_events() && !right) return;
    if (!agent_->answer(id, reply, now)) return;
    require(right, "answer() without a query");
    ids_.erase(id);
  }
  void stop(Time now) {
    if (listeners_.empty()) return;
    const cm::ListenerId listener = listeners_.back();
    listeners_.pop_back();
    agent_->stop(listener, now);
    std::erase_if(ids_, [listener](const auto& id) { return id.second.listener == listener; });
  }

  const std::size_t number_;
  std::deque<Message>& wire_;
  std::deque<Message>& requests_;
  Stats stats_;
  std::unique_ptr<cm::Agent> agent_;
  std::map<cm::ConnectionId, Known> ids_;
  std::vector<cm::ListenerId> listeners_;
  Time heard_{};
  std::uint64_t random_ = 1;
  std::uint64_t sum_ = 0;  // so that every byte is read
};

void Party::call(Input& input, Time now) {
  switch (input.byte() % 18) {
    case 0:
    case 1:
      return connect(input, now);
    case 2:
    case 3:
      return accept(input, now);
    case 4:
    case 5:
      return confirm(input, now);
    case 6:
      return reject(input, now);
    case 7: {
      const cm::ConnectionId id = any_id(input);
      agent_->disconnect(id, std::vector<std::byte>(input.below(300)), now);
      ids_.erase(id);
      return;
    }
    case 8: {
      const std::uint64_t service = input.byte() % kServices;
      const auto id = agent_->listen(service, input.byte() % 4U, *this, this);
      if (id) listeners_.push_back(id.value());
      if (input.byte() >= 0xF0) stop(now);
      return;
    }
    case 9:
      return agent_->established(any_id(input), now);
    case 10: {
      const cm::ConnectionId id = any_id(input);
      agent_->abandon(id, now);
      ids_.erase(id);
      return;
    }
    case 11: {
      const cm::ConnectionId id = any_id(input);
      const bool delayed = agent_->delay(id, input.byte() % 40, now).ok();
      require(!delayed || agent_->has_events() || is(id, Phase::kAsked), "delay() of no request");
      return;
    }
    case 12:
      heard_ = now;
      return agent_->probe(any_id(input), now);
    case 13:
      return resolve(input, now);
    case 14:
      return answer(input, now);
    case 15:
      return forward(input, now);
    case 16:
      return adopt(input, now);
    default:
      return agent_->unreachable(remote(input.byte() % kParties), now);
  }
}

// Three agents, and the messages between them.
class Scene {
 public:
  void step(Input& input) {
    const std::uint8_t choice = input.byte();
    const std::size_t number = choice % kParties;
    Party& party = parties_[number];
    if (choice < 0x50) {
      party.call(input, now_);
    } else if (choice < 0x90) {
      carry(input);
    } else if (choice < 0xA0) {
      pass(std::chrono::microseconds(input.below(50'000)));
    } else if (choice < 0xB0) {
      pass(std::max(party.agent().due(), now_) - now_);
    } else if (choice < 0xC0) {
      std::vector<std::byte> raw(1 + input.below(600));
      input.bytes(raw.data(), raw.size());
      take(neighbour(number), number, raw);
    } else if (choice < 0xFC) {
      const auto mad = wire::write_cm({0, transaction(input), 0, draw(input, party)});
      take(neighbour(number), number, mad);
    } else {
      party.close(now_);
    }
    if (input.byte() < 0xC0) {
      for (Party& each : parties_) each.settle();
    }
  }
  // All ends, and nothing is left.
  void close() {
    for (Party& party : parties_) {
      party.close(now_);
      cm::Agent& agent = party.agent();
      for (int i = 0; agent.due() != Time::max(); ++i) {
        require(i < 10'000, "deadlines without end");
        pass(std::max(agent.due(), now_) - now_);
        party.settle();
      }
      require(agent.connections() == 0, "connections are left");
      require(agent.entries() == 0, "entries are left");
    }
  }

 private:
  static std::size_t neighbour(std::size_t number) { return (number + 1) % kParties; }
  void take(std::size_t from, std::size_t to, std::span<const std::byte> bytes) {
    parties_[to].agent().take(Party::remote(from), bytes, now_);
  }
  void pass(Time::duration time) {
    if (time > std::chrono::hours(1)) return;
    now_ += time;
    for (Party& party : parties_) {
      if (party.agent().due() > now_) continue;
      party.agent().advance(now_);
      require(party.agent().due() > now_, "advance() leaves something to do");
    }
  }
  // The oldest message, or another one: changed, or twice, or not at all.
  void carry(Input& input) {
    if (wire_.empty()) return;
    const std::uint8_t fate = input.byte();
    const std::size_t which = fate < 0xC0 ? 0 : input.byte() % wire_.size();
    Message message = wire_[which];
    if (const auto mad = parse(message.bytes)) {
      transactions_[heard_++ % transactions_.size()] = mad->transaction;
    }
    if (fate < 0xE0) wire_.erase(wire_.begin() + static_cast<std::ptrdiff_t>(which));
    if (fate >= 0x80 && fate < 0x90) return;
    for (unsigned changes = fate >= 0x90 && fate < 0xB0 ? 1 + (fate & 3) : 0; changes != 0;
         --changes) {
      message.bytes[input.below(static_cast<std::uint32_t>(message.bytes.size()))] =
          static_cast<std::byte>(input.byte());
    }
    take(message.from, message.to, message.bytes);
  }
  std::uint64_t transaction(Input& input) {
    const std::uint8_t choice = input.byte();
    return choice < 0xE0 ? transactions_[choice % transactions_.size()] : choice;
  }
  wire::CmMessage draw(Input& input, const Party& party) {
    const auto ids = [&](auto message) {
      message.local_id = parties_[neighbour(party.number())].any_id(input);
      message.remote_id = party.any_id(input);
      return message;
    };
    switch (input.byte() % 11) {
      case 0: {
        wire::CmReq req;
        req.local_id = input.byte();
        req.ca_guid = 7 + input.byte() % 3U;
        req.service = input.byte() % (kServices + 1);
        return req;
      }
      case 1: {
        auto mra = ids(wire::CmMra{});
        mra.message = input.byte() % 4;
        mra.service_timeout = input.byte() % 32;
        return mra;
      }
      case 2: {
        auto rej = ids(wire::CmRej{});
        rej.message = input.byte() % 4;
        rej.reason = static_cast<wire::CmReason>(input.byte() % 36);
        return rej;
      }
      case 3: {
        auto rep = ids(wire::CmRep{});
        rep.ca_guid = 7 + input.byte() % 3U;
        return rep;
      }
      case 4:
        return ids(wire::CmRtu{});
      case 5:
        return ids(wire::CmDreq{});
      case 6:
        return ids(wire::CmDrep{});
      case 7:
        return wire::CmSidrReq{party.any_id(input), 0xFFFF, input.byte() % (kServices + 1), {}};
      case 8: {
        wire::CmSidrRep rep;
        rep.request = party.any_id(input);
        rep.status = input.byte() % 6;
        return rep;
      }
      case 9:
        return ids(wire::CmLap{});
      default: {
        auto apr = ids(wire::CmApr{});
        apr.status = input.byte() % 4;
        return apr;
      }
    }
  }

  Time now_ = Time{} + std::chrono::seconds(1);
  std::deque<Message> wire_;
  std::deque<Message> requests_;
  std::array<Party, kParties> parties_{
      {{0, wire_, requests_}, {1, wire_, requests_}, {2, wire_, requests_}}};
  std::array<std::uint64_t, 8> transactions_{};  // of messages that were carried
  std::size_t heard_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Scene scene;
  Input input(data, size);
  for (int steps = 0; steps < 200 && !input.empty(); ++steps) scene.step(input);
  scene.close();
  return 0;
}
