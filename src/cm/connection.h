// SPDX-License-Identifier: BSD-2-Clause
// What does the agent keep of one connection?
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "age_list.h"
#include "base/request_credits.h"
#include "base/time.h"
#include "cm/event.h"
#include "cm/options.h"
#include "cm/remote.h"

namespace weft::cm {

// The states of IBTA 12.9.7. The MRA states are those without, with a later deadline.
enum class Phase : std::uint8_t {
  kReqSent,      // requester: awaits a REP
  kRepReceived,  // requester: its user decides
  kReqReceived,  // acceptor: its user decides
  kRepSent,      // acceptor: awaits the RTU
  kEstablished,
  kDreqSent,
  kSidrReqSent,      // awaits a SIDR_REP
  kSidrReqReceived,  // the user decides
  kTimeWait,         // the communication id rests; `kept` answers late repetitions
};

// Which messages this end has sent, or expects.
enum class Role : std::uint8_t {
  kRequester,  // REQ and RTU
  kAcceptor,   // REP
  kInquirer,   // SIDR_REQ
  kResponder,  // SIDR_REP
};

// Time::max() for durations without an end.
inline Time after(Time now, std::chrono::nanoseconds duration) {
  return duration > Time::max() - now ? Time::max() : now + duration;
}

// When the message that was sent last is repeated, and when it has failed.
struct RepeatTimer {
  static constexpr unsigned kWithoutEnd = std::numeric_limits<unsigned>::max();
  static constexpr std::chrono::nanoseconds kShortest = std::chrono::milliseconds(1);  // pause

  RepeatTimes times;
  Time next = Time::max();
  Time end = Time::max();
  std::chrono::nanoseconds pause{};
  unsigned left = 0;  // repetitions

  // A message is sent now, and repeated at most so many times.
  void start(const RepeatTimes& chosen, unsigned repetitions, Time now) {
    times = chosen;
    left = repetitions;
    pause = std::max(times.first, kShortest);
    next = after(now, pause);
    end = after(now, times.limit);
  }
  // Nothing is repeated.
  void wait(Time until) {
    left = 0;
    end = until;
  }
  // The message was repeated.
  void step(Time now) {
    if (left != kWithoutEnd) --left;
    pause = std::max(pause < times.longest / 2 ? 2 * pause : times.longest, kShortest);
    next = after(now, pause);
  }
  // An MRA arrived: the answer takes so long. It is asked for again then in any case: an MRA shows
  // that the address is no forged one.
  void postpone(std::chrono::nanoseconds service, Time now) {
    left = std::max(left, 1U);
    pause = std::max(times.first, kShortest);
    next = now + service;
    end = std::max(end, after(now + service, times.limit));
  }
  Time due() const { return left == 0 ? end : std::min(next, end); }
};

// Where a REQ or SIDR_REQ goes that nothing has answered yet, with ConnectRequest::other or
// ends_unreachable.
struct UnansweredReq {
  std::optional<Remote> other;
  Time other_from = Time::max();  // when it is asked for the first time
  bool ends_unreachable = false;
  bool asks_other = false;
  bool is_unreachable = false;  // was reported so
  bool is_other_unreachable = false;
  Time asked_again{};  // reports before that are no answer to a REQ

  // An MRA came: the listener is the only place from now on, which is asked again then.
  void wait_for_listener(Time next) {
    *this = UnansweredReq{};
    ends_unreachable = true;
    asked_again = next;
  }
  void ask_other() {
    asks_other = other.has_value();
    other_from = Time::max();
  }
  bool is_refused() const {
    return ends_unreachable && is_unreachable && (!other || is_other_unreachable);
  }
};

// What an entry has besides while something is due or may be repeated.
struct Task {
  RepeatTimer timer;
  Time due = Time::max();       // as the deadlines have it
  std::vector<std::byte> kept;  // the message to be repeated
  std::unique_ptr<UnansweredReq> unanswered;
  std::shared_ptr<RequestCredits> lender;  // AcceptRequest::credits

  Time next_due() const {
    return unanswered == nullptr ? timer.due() : std::min(timer.due(), unanswered->other_from);
  }
};

// One entry of the agent: a connection, or an attempt at one.
struct CmConnection {
  explicit CmConnection(ConnectionId number) : id(number) {}

  const ConnectionId id;
  Phase phase = Phase::kReqSent;
  Role role = Role::kAcceptor;
  bool watched = false;    // ConnectRequest::watched
  bool forwarded = false;  // at rest: another agent answers the request
  bool adopted = false;    // its REQ has come to another agent
  Remote remote;
  std::uint32_t remote_id = 0;    // 0: not known yet
  std::uint64_t transaction = 0;  // of the REQ
  std::uint64_t remote_guid = 0;  // 0: not known yet
  std::uint32_t own_qpn = 0;
  std::uint32_t remote_qpn = 0;
  std::uint32_t remote_end = 0;  // of an acceptor: the peer's queue pair, or context
  User* user = nullptr;          // null: nothing is reported any more
  void* context = nullptr;
  ListenerId listener = 0;       // of an undecided request
  std::uint8_t mra_timeout = 0;  // code for the MRAs of an undecided request
  std::uint8_t delays = 0;       // of an undecided request: MRAs that no repeated REQ asked for
  std::uint8_t credits = 0;      // of a half-open request: that its REQs have taken
  std::unique_ptr<Task> task;    // null for most established connections
  AgeList::AgePlace place;       // among those in the same state, or of the same peer
};

}  // namespace weft::cm
