// SPDX-License-Identifier: BSD-2-Clause
// Which requests of its host has a listener not decided yet?
#include "undecided_requests.h"

#include <algorithm>
#include <chrono>

namespace weft::device {
namespace {

// Looking takes several system calls.
constexpr auto kBetweenLooks = std::chrono::milliseconds(100);
constexpr std::size_t kLooksAtOnce = 64;

}  // namespace

std::vector<cm::ConnectionId> UndecidedRequests::remove_abandoned(const cm::Agent& agent,
                                                                  MadOutbox& mads, os::Time now) {
  std::erase_if(requests_, [&](const auto& each) { return !agent.is_undecided(each.first); });
  std::vector<cm::ConnectionId> abandoned;
  for (std::size_t looks = std::min(kLooksAtOnce, requests_.size()); looks != 0; --looks) {
    auto next = requests_.upper_bound(last_);
    if (next == requests_.end()) next = requests_.begin();
    last_ = next->first;
    if (now - next->second.looked_at < kBetweenLooks) continue;
    next->second.looked_at = now;
    if (!mads.is_gone(next->second.from)) continue;
    requests_.erase(next);
    abandoned.push_back(last_);
  }
  return abandoned;
}

}  // namespace weft::device
