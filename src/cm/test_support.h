// SPDX-License-Identifier: BSD-2-Clause
// How are agents tested? With a host that records messages, and a user that records events.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cm/agent.h"

namespace weft::cm::testing {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Bytes = std::vector<std::byte>;

inline constexpr std::uint64_t kService = 0x1061C06;

inline Bytes bytes_of(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

// 192.0.2.`last`, port 40000.
inline Remote remote(int last, std::uint16_t port = 40000) {
  const std::byte host[4] = {std::byte{192}, std::byte{0}, std::byte{2},
                             static_cast<std::byte>(last)};
  return {os::SocketAddress::of_host(AF_INET, host, port)};
}

// A source that does not exist, different for each number.
inline Remote spoofed(std::uint32_t number) {
  const std::byte host[4] = {std::byte{10}, static_cast<std::byte>(number >> 16),
                             static_cast<std::byte>(number >> 8), static_cast<std::byte>(number)};
  return {os::SocketAddress::of_host(AF_INET, host, 40000)};
}

inline const char* name_of(const wire::CmMessage& message) {
  constexpr const char* kNames[] = {"REQ",  "MRA",      "REJ",      "REP", "RTU", "DREQ",
                                    "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"};
  return kNames[message.index()];
}

// "REJ(8)": the name, and the reason of a rejection.
inline std::string description_of(const wire::CmMessage& message) {
  const auto* const rej = std::get_if<wire::CmRej>(&message);
  if (rej == nullptr) return name_of(message);
  return "REJ(" + std::to_string(static_cast<unsigned>(rej->reason)) + ")";
}

// A message that an agent has sent.
struct Sent {
  Remote to;
  Bytes bytes;
  wire::CmMad mad;
  ConnectionId id;  // of the connection that it belongs to

  template <class M>
  const M& as() const {
    return std::get<M>(mad.message);
  }
};

class RecordingHost final : public CmHost {
 public:
  explicit RecordingHost(std::uint64_t seed) : state_(seed) {}

  void send(const Remote& to, ConnectionId id, std::span<const std::byte> message) override {
    ++count;
    sent.push_back({to,
                    {message.begin(), message.end()},
                    *wire::parse_cm(message.first(wire::kMadBytes)),
                    id});
  }
  std::uint64_t random() override { return state_ = state_ * 6364136223846793005 + 99991; }
  bool is_near(const Remote&) override { return has_near_peers; }

  // Names of the messages since the last look, which are gone then; a REJ with its reason.
  std::string look() {
    std::string names;
    for (const Sent& each : std::exchange(sent, {})) {
      names += (names.empty() ? "" : " ") + description_of(each.mad.message);
    }
    return names;
  }

  std::vector<Sent> sent;
  std::size_t count = 0;
  bool has_near_peers = false;

 private:
  std::uint64_t state_;
};

// An event, which outlives its message.
struct Heard {
  CmEvent event;
  std::optional<wire::CmMad> mad;
  Bytes more;
};

inline const char* name_of(EventKind kind) {
  constexpr const char* kNames[] = {"request",      "reply",     "established", "rejected",
                                    "timed out",    "withdrawn", "overrun",     "unreachable",
                                    "disconnected", "lost",      "resolve",     "resolved"};
  return kNames[static_cast<std::size_t>(kind)];
}

class Program final : public User {
 public:
  void handle(const CmEvent& event) override {
    Heard one{event, std::nullopt, {event.more.begin(), event.more.end()}};
    if (event.mad != nullptr) one.mad = *event.mad;
    events.push_back(std::move(one));
  }
  Time last_received(ConnectionId, void*) override { return last_data; }
  // Names of the events since the last look, which are gone then.
  std::string look() {
    std::string names;
    for (const Heard& each : std::exchange(events, {})) {
      names += (names.empty() ? "" : " ") + std::string(name_of(each.event.kind));
    }
    return names;
  }

  std::vector<Heard> events;
  Time last_data{};
};

inline AgentOptions options_of(int last) {
  AgentOptions options;
  options.port = 40000;
  options.guid = 0x1000 + static_cast<std::uint64_t>(last);
  return options;
}

// An agent with its host and one user.
struct Station {
  explicit Station(int last, AgentOptions options)
      : here(remote(last)), host(static_cast<std::uint64_t>(last)), agent(host, options, stats) {}
  explicit Station(int last) : Station(last, options_of(last)) {}

  // A message from `from` arrives; its events are delivered.
  bool take(const Remote& from, const wire::CmMad& mad, Time now) {
    const bool taken = agent.take(from, wire::write_cm(mad), now);
    agent.deliver();
    return taken;
  }

  Remote here;
  Stats stats;
  RecordingHost host;
  Agent agent;
  Program program;
};

// Two agents and the time.
struct Pair {
  explicit Pair(const AgentOptions& of_b = options_of(2)) : b(2, of_b) {
    listener = b.agent.listen(kService, 16, b.program, &b).value();
  }

  // Delivers messages until there is none.
  void carry() {
    while (!a.host.sent.empty() || !b.host.sent.empty()) {
      carry(a, b);
      carry(b, a);
    }
  }
  // Delivers those of one agent to the other, if they are addressed to it.
  void carry(Station& from, Station& to) {
    for (const Sent& each : std::exchange(from.host.sent, {})) {
      if (each.to == to.here) to.agent.take(from.here, each.bytes, now);
    }
    a.agent.deliver();
    b.agent.deliver();
  }
  void lose() { a.host.sent.clear(), b.host.sent.clear(); }
  // Time passes; all messages arrive, or all are lost.
  void pass(std::chrono::nanoseconds duration, bool lost = false) {
    const Time until = now + duration;
    while (std::min(a.agent.due(), b.agent.due()) <= until) {
      now = std::max(now, std::min(a.agent.due(), b.agent.due()));
      a.agent.advance(now);
      b.agent.advance(now);
      lost ? lose() : carry();
      a.agent.deliver();
      b.agent.deliver();
    }
    now = until;
  }

  ConnectRequest request(bool watched = false) const {
    ConnectRequest request;
    request.to = b.here;
    request.req.service = kService;
    request.req.qpn = qpn;
    request.watched = watched;
    return request;
  }
  // a sends a REQ, which stays in its host.
  ConnectionId ask(bool watched = false) {
    at_a = a.agent.connect(request(watched), a.program, &a, now).value();
    return at_a;
  }
  // b accepts the request that it has heard of last.
  void accept(bool watched = false) {
    at_b = b.program.events.back().event.id;
    AcceptRequest reply;
    reply.rep.qpn = 0x9C4003;
    reply.watched = watched;
    accepted = b.agent.accept(at_b, reply, b.program, &at_b, now);
  }
  // Both ends are established; all events are forgotten.
  void establish(bool watched = false) {
    ask(watched);
    carry();
    accept(watched);
    carry();
    confirmed = a.agent.confirm(at_a, {}, now);
    carry();
    a.program.events.clear();
    b.program.events.clear();
  }
  bool is_empty() const { return a.agent.entries() == 0 && b.agent.entries() == 0; }

  Station a{1};
  Station b;
  Time now{seconds(1000)};
  std::uint32_t qpn = 0x9C4002;  // of the next request
  ListenerId listener = 0;
  ConnectionId at_a = 0;
  ConnectionId at_b = 0;
  Status accepted;
  Status confirmed;
};

}  // namespace weft::cm::testing
