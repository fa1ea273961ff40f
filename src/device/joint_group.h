// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint reach and hear a group whose members are both within the host and elsewhere?
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "link/unreliable_flow.h"

namespace weft::device {

// A sender on each link to the members that it leads to. No member is reached by two.
class JointGroupFlow final : public link::UnreliableFlow {
 public:
  explicit JointGroupFlow(std::vector<std::unique_ptr<link::Flow>> senders)
      : senders_(std::move(senders)) {}

  link::Outcome send(const link::SendRequest& request) override {
    link::Outcome all;
    for (const auto& sender : senders_) {
      const link::Outcome one = sender->send(request);
      if (all.state == link::Outcome::State::kDone) all = one;
    }
    return all;
  }
  bool ready() const override {
    return std::ranges::any_of(senders_, [](const auto& sender) { return sender->ready(); });
  }
  void progress(link::FlowSink& sink) override {
    for (const auto& sender : senders_) sender->progress(sink);
  }
  link::PeerState check_peer(link::FlowSink& sink) override {
    link::PeerState last = link::PeerState::kAlive;
    for (const auto& sender : senders_) last = sender->check_peer(sink);
    return last;
  }

 private:
  const std::vector<std::unique_ptr<link::Flow>> senders_;
};

}  // namespace weft::device
