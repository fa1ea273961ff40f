// SPDX-License-Identifier: BSD-2-Clause
// How does a test get datagrams through where the network may lose some?
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "party.h"

namespace weft::conformance {

// Whether the network may lose what no endpoint sends again: WEFT_TEST_LOSSES is in the
// environment. Elsewhere every datagram has to arrive.
bool may_lose();

// Sends, and waits until that is heard; where it may be lost, sends again and waits again, each
// time for a moment. False when patience ran out.
bool until_heard(const std::function<void()>& send,
                 const std::function<bool(std::chrono::milliseconds limit)>& heard);

// The same for one operation of one party that a receive of another one waits for; the completion
// of that receive. When it returns no further copy of the operation is under way.
Completion deliver(Party& from, const Operation& operation, Party& to, Token received);

// Where numbered datagrams come from.
struct Source {
  Party* party;
  fi_addr_t receiver;  // in the party's address vector
  fi_addr_t name;      // of the party, in the receiver's
};
// The next completion of the receiver's, if it comes in that time.
using Next = std::function<std::optional<Completion>(std::chrono::milliseconds limit)>;

// The sources send `length` bytes each in turn, until `count` of them are heard. Each datagram has
// a number, which its remote CQ data say and of which number_seed() makes its pattern. No number
// may be heard twice, nor from another source than the one that sent it.
std::vector<Completion> hear_numbered(const std::vector<Source>& sources, std::size_t length,
                                      std::size_t count, const Next& next);
inline std::uint64_t number_seed(std::uint64_t number) { return number + 1; }

}  // namespace weft::conformance
