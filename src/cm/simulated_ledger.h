// SPDX-License-Identifier: BSD-2-Clause
// What do the two ends of each connection of a simulation know, and do they agree?
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cm/agent.h"
#include "entries.h"
#include "simulated_network.h"

namespace weft::cm::testing {

// Private data that name the end that sends them and differ from those of any other message.
enum class Letter : std::uint32_t { kReq, kRep, kRtu, kRej, kDreq, kSidrReq, kSidrRep };

inline std::byte letter_byte(std::uint32_t end, Letter letter, std::size_t position) {
  if (position < 4) return static_cast<std::byte>(end >> 8 * position);
  const std::uint64_t key = std::uint64_t{end} << 8 | static_cast<std::uint32_t>(letter);
  return static_cast<std::byte>(mix(key * 0x9e3779b97f4a7c15 + position / 8) >> position % 8 * 8);
}
// The first bytes of a letter.
inline Bytes write_letter(std::uint32_t end, Letter letter, std::size_t length) {
  Bytes bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = letter_byte(end, letter, i);
  return bytes;
}
// How many bytes of a letter do not fit into the MAD.
inline std::size_t more_bytes(std::uint32_t end, Letter letter) {
  const std::uint64_t drawn = mix(std::uint64_t{end} * 31 + static_cast<std::uint32_t>(letter));
  return drawn % 2 == 0 ? 0 : 1 + drawn / 2 % kMaxMorePrivateData;
}
// The end that wrote a letter; none when a byte differs.
inline std::optional<std::uint32_t> read_letter(Letter letter, std::span<const std::byte> data,
                                                std::span<const std::byte> more = {}) {
  std::uint32_t end = 0;
  for (std::size_t i = 0; i < 4; ++i) end |= static_cast<std::uint32_t>(data[i]) << 8 * i;
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (data[i] != letter_byte(end, letter, i)) return std::nullopt;
  }
  for (std::size_t i = 0; i < more.size(); ++i) {
    if (more[i] != letter_byte(end, letter, data.size() + i)) return std::nullopt;
  }
  return end;
}

class SimulatedUser;

// One end of a connection, or of a resolution, as its user sees it.
struct End {
  enum class State : std::uint8_t {
    kTrying,    // requester: before an answer
    kReplied,   // requester: to confirm
    kAsked,     // acceptor: to decide
    kAccepted,  // acceptor: before the RTU
    kUp,
    kOver,
  };
  std::uint32_t number = 0;
  bool requests = false;
  bool resolves = false;
  bool watched = false;
  bool confirmed = false;  // was established
  bool rejected = false;   // by its user, with a letter
  bool silent = false;     // requester: confirms without a letter
  bool abandoned = false;  // by its user
  bool closed = false;     // by its user, with a letter
  bool stranger = false;   // acceptor: the requester is not part of the simulation
  bool adopted = false;    // acceptor: from another process
  bool forwarded = false;  // acceptor: to another process
  bool ends_unreachable = false;
  State state = State::kTrying;
  unsigned life = 0;  // of its process
  std::uint64_t guid = 0;
  os::SocketAddress address;  // of its process
  Remote peer;
  Remote asked;                        // requester
  std::optional<Remote> asked_second;  // requester
  wire::CmMad req;                     // acceptor
  SimulatedUser* user = nullptr;
  ConnectionId id = 0;
  ListenerId listener = 0;
  End* other = nullptr;  // acceptor: the requester; requester: the acceptor of the reply
  Time began;
  std::chrono::nanoseconds limit{};
  Time last_received{};

  std::uint32_t qpn() const { return number + 0x10; }
  bool half_open() const { return state == State::kAsked || state == State::kAccepted; }
  bool agreed() const {
    return state == State::kUp && other != nullptr && other->state == State::kUp &&
           other->other == this;
  }
};

// All ends that there were.
class Ledger {
 public:
  End& open() {
    End& end = ends_.emplace_back();
    end.number = static_cast<std::uint32_t>(ends_.size() - 1);
    return end;
  }
  End* find(std::optional<std::uint32_t> number) {
    return number && *number < ends_.size() ? &ends_[*number] : nullptr;
  }
  std::deque<End>& ends() { return ends_; }

  // The end learns that the connection or the attempt is over.
  void check_end(const End& end, EventKind kind, Time now) {
    using State = End::State;
    static const std::string kNames[] = {"request",      "reply",     "established", "rejected",
                                         "timed out",    "withdrawn", "overrun",     "unreachable",
                                         "disconnected", "peer lost", "resolve",     "resolved"};
    const auto is = [&](std::initializer_list<EventKind> kinds) {
      return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
    };
    const std::string& name = kNames[static_cast<std::size_t>(kind)];
    switch (end.state) {
      case State::kTrying:
      case State::kReplied:
        check(is({EventKind::kRejected, EventKind::kTimedOut}) ||
                  (kind == EventKind::kUnreachable && end.state == State::kTrying),
              "a requester's attempt ends with " + name);
        if (kind == EventKind::kTimedOut) check_time_out(end, now);
        break;
      case State::kAsked:
        check(is({EventKind::kWithdrawn, EventKind::kOverrun, EventKind::kTimedOut}),
              "an undecided request ends with " + name);
        break;
      case State::kAccepted:
        check(is({EventKind::kWithdrawn, EventKind::kOverrun, EventKind::kTimedOut,
                  EventKind::kRejected}),
              "an accepted request ends with " + name);
        break;
      case State::kUp:
        check(is({EventKind::kDisconnected, EventKind::kPeerLost}),
              "a connection ends with " + name);
        check(kind != EventKind::kDisconnected || !end.agreed(), "disconnected from a living peer");
        check(kind != EventKind::kPeerLost || !end.agreed() || now < trusted_from,
              "a living peer counts as lost");
        break;
      case State::kOver:
        check(false, name + " after the end");
        break;
    }
  }
  // How many established ends are watched.
  long watched() const {
    return std::count_if(ends_.begin(), ends_.end(), [](const End& end) {
      return end.watched && end.state == End::State::kUp;
    });
  }
  // No end waits any more, and the ends of each connection agree.
  void check_settled() {
    for (const End& end : ends_) {
      if (end.state == End::State::kOver || undecided(end)) continue;
      check(end.state == End::State::kUp, text_of(end) + " waits without end");
      if (end.stranger) continue;
      const bool informed = end.watched || (calm && !end.other->abandoned);
      check(end.agreed() || !informed, text_of(end) + " is established alone");
    }
  }
  void check(bool holds, const std::string& otherwise) {
    if (!holds && wrong_.empty()) wrong_ = otherwise;
  }
  const std::string& wrong() const { return wrong_; }

  // When the process of each address began; Time::max() when it has ended.
  std::vector<Time> begun;
  bool forged = false;              // messages are
  bool calm = false;                // nothing gets lost, no process ends, and nothing is forged
  Time trusted_from = Time::max();  // from then on each probe is answered in time

 private:
  void check_time_out(const End& end, Time now) {
    if (end.state == End::State::kReplied) return;
    check(now - end.began >= end.limit, "an attempt times out early");
    // Else the answers may have been limited, or displaced by forgeries.
    if (trusted_from != Time{} || forged || end.limit < std::chrono::seconds(30)) return;
    const std::size_t to = end.peer.address.port() - 40'000U;
    check(begun[to] > end.began || has_acceptor(end), "an attempt that gets no answer");
  }
  bool has_acceptor(const End& end) const {
    return std::any_of(ends_.begin(), ends_.end(),
                       [&](const End& each) { return each.other == &end && !each.requests; });
  }
  // The end, and those that have or had it as their peer.
  std::string text_of(const End& end) const {
    static const std::string kNames[] = {"trying", "replied", "asked", "accepted", "up", "over"};
    const auto name = [&](const End& each) {
      return "end " + std::to_string(each.number) + " (" +
             kNames[static_cast<std::size_t>(each.state)] + ")";
    };
    std::string text = name(end) + " of process " + std::to_string(end.address.port() - 40'000);
    if (end.other != nullptr) text += " with " + name(*end.other);
    for (const End& each : ends_) {
      if (each.other == &end && &each != end.other) text += ", for " + name(each);
    }
    return text;
  }
  // Both ends wait for the acceptor's user, which may take as long as it likes.
  bool undecided(const End& end) const {
    using State = End::State;
    if (end.state == State::kAsked)
      return end.other != nullptr && end.other->state == State::kTrying;
    return end.state == State::kTrying && std::any_of(ends_.begin(), ends_.end(), [&](auto& each) {
             return each.other == &end && each.state == State::kAsked;
           });
  }

  std::deque<End> ends_;
  std::string wrong_;
};

}  // namespace weft::cm::testing
