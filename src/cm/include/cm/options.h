// SPDX-License-Identifier: BSD-2-Clause
// What can be chosen for a connection manager, and for one of its requests?
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/answer_limiter.h"

namespace weft::cm {

// How long after the first copy of a message the others follow: `first`, then twice the pause
// before, up to `longest`. After `limit` without an answer the message has failed.
struct RepeatTimes {
  std::chrono::nanoseconds first = std::chrono::milliseconds(2);
  std::chrono::nanoseconds longest = std::chrono::milliseconds(500);
  std::chrono::nanoseconds limit = std::chrono::seconds(30);
};

// How many REQs and SIDR_REQs that packets bring are taken before their requesters are known to
// receive the answers. Each takes a credit, which an established connection gives back.
struct RequestRates {
  unsigned most = 1024;       // credits
  unsigned per_second = 250;  // that come back without an established connection
};

// When the answers to a REQ are repeated, and when they have failed.
struct AnswerTimes {
  // REP, repeated by timer at most AgentOptions::most_replies times. `limit`: also of failed
  // attempts.
  RepeatTimes replies{std::chrono::milliseconds(250), std::chrono::seconds(2),
                      std::chrono::seconds(8)};
  // An undecided request whose REQ is not repeated for so long has failed.
  std::chrono::nanoseconds undecided_limit = std::chrono::seconds(30);
};

// For messages that cannot get lost, to processes that their user watches.
inline constexpr RepeatTimes kNoRepetition{std::chrono::nanoseconds::max(),
                                           std::chrono::nanoseconds::max(),
                                           std::chrono::nanoseconds::max()};

// When the peer of an established connection is asked whether it lives.
struct WatchTimes {
  // Without a sign of life for so long a probe is sent, and repeated.
  std::chrono::nanoseconds probe_after = std::chrono::seconds(2);
  // A peer that the network reported as unreachable, or whose address another instance claims,
  // counts as dead when no probe was answered for so long.
  std::chrono::nanoseconds suspect_timeout = std::chrono::seconds(1);
};

struct AgentOptions {
  std::uint16_t port = 0;  // UDP port of the manager: the upper half of its communication ids
  std::uint64_t guid = 0;  // of this instance, drawn at random: the CA GUID of its messages
  AnswerTimes packets = {};
  AnswerTimes mailbox{kNoRepetition, std::chrono::nanoseconds::max()};
  unsigned most_replies = 3;
  RepeatTimes disconnects{std::chrono::milliseconds(10), std::chrono::milliseconds(500),
                          std::chrono::seconds(2)};
  // A communication id rests so long after the end of its connection (IBTA 12.9.8.4).
  std::chrono::nanoseconds time_wait = std::chrono::milliseconds(100);
  // Liveness of the peers of established connections that ask for it (ConnectRequest::watched):
  // without an answer for `peer_timeout` since the last sign of life the peer counts as dead.
  WatchTimes watch = {};
  // The same for peers of this host (CmHost::is_near()): their end is known within a second.
  WatchTimes near_watch{std::chrono::milliseconds(400), std::chrono::milliseconds(300)};
  std::chrono::nanoseconds peer_timeout = std::chrono::seconds(60);
  // REJ of an unknown service, connection or packet, of a REQ that is refused by refuse() or
  // repeated; DREP, APR and SIDR_REP of an unknown one.
  AnswerRates answers = {};
  RequestRates requests = {};
};

}  // namespace weft::cm
