// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint reach and hear a group whose members are both within the host and elsewhere?
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "link/unreliable_flow.h"

namespace weft::device {

// The ways by each link to the members that it leads to. No member is reached by two.
class JointGroupFlow final : public link::UnreliableFlow {
 public:
  explicit JointGroupFlow(std::vector<std::unique_ptr<link::Flow>> ways)
      : senders_(std::move(ways)) {}

  link::Outcome send(const link::SendRequest& request) override {
    link::Outcome all;
    for (const auto& way : senders_) {
      const link::Outcome one = way->send(request);
      if (all.state == link::Outcome::State::kDone) all = one;
    }
    return all;
  }
  bool ready() const override {
    return std::ranges::any_of(senders_, [](const auto& way) { return way->ready(); });
  }
  void progress(link::FlowSink& sink) override {
    for (const auto& way : senders_) way->progress(sink);
  }
  link::PeerState check_peer(link::FlowSink& sink) override {
    link::PeerState last = link::PeerState::kAlive;
    for (const auto& way : senders_) last = way->check_peer(sink);
    return last;
  }

 private:
  const std::vector<std::unique_ptr<link::Flow>> senders_;
};

}  // namespace weft::device
