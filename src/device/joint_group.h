// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint reach and hear a group whose members are both within the host and elsewhere?
#pragma once

#include <memory>
#include <utility>

#include "link/unreliable_flow.h"

namespace weft::device {

// The ways to the members on this host and to all others. No member is reached by both.
class JointGroupFlow final : public link::UnreliableFlow {
 public:
  JointGroupFlow(std::unique_ptr<link::Flow> near, std::unique_ptr<link::Flow> far)
      : near_(std::move(near)), far_(std::move(far)) {}

  link::Outcome send(const link::SendRequest& request) override {
    const link::Outcome near = near_->send(request);
    const link::Outcome far = far_->send(request);
    return near.state == link::Outcome::State::kDone ? far : near;
  }
  bool ready() const override { return near_->ready() || far_->ready(); }
  void progress(link::FlowSink& sink) override {
    near_->progress(sink);
    far_->progress(sink);
  }
  link::PeerState check_peer(link::FlowSink& sink) override {
    near_->check_peer(sink);
    return far_->check_peer(sink);
  }

 private:
  const std::unique_ptr<link::Flow> near_;
  const std::unique_ptr<link::Flow> far_;
};

}  // namespace weft::device
