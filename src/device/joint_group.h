// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint reach and hear a group whose members are both within the host and elsewhere?
#pragma once

#include <memory>
#include <utility>

#include "link/flow.h"
#include "link/membership.h"

namespace weft::device {

// Being a member for both.
class JointMembership final : public link::Membership {
 public:
  JointMembership(std::unique_ptr<link::Membership> near, std::unique_ptr<link::Membership> far)
      : near_(std::move(near)), far_(std::move(far)) {}

 private:
  const std::unique_ptr<link::Membership> near_;
  const std::unique_ptr<link::Membership> far_;
};

// The ways to the members on this host and to all others. No member is reached by both.
class JointGroupFlow final : public link::Flow {
 public:
  JointGroupFlow(std::unique_ptr<link::Flow> near, std::unique_ptr<link::Flow> far)
      : near_(std::move(near)), far_(std::move(far)) {}

  link::Outcome send(const link::SendRequest& request) override {
    const link::Outcome near = near_->send(request);
    const link::Outcome far = far_->send(request);
    return near.state == link::Outcome::State::kDone ? far : near;
  }
  link::Outcome access(const link::AccessRequest& request) override {
    return near_->access(request);
  }
  link::Outcome atomic(const link::AtomicRequest& request) override {
    return near_->atomic(request);
  }
  bool busy() const override { return near_->busy() || far_->busy(); }
  bool ready() const override { return near_->ready() || far_->ready(); }
  void progress(link::FlowSink& sink) override {
    near_->progress(sink);
    far_->progress(sink);
  }
  link::PeerState check_peer(link::FlowSink& sink) override {
    near_->check_peer(sink);
    return far_->check_peer(sink);
  }
  void give_up(link::FlowSink& sink) override {
    near_->give_up(sink);
    far_->give_up(sink);
  }
  int process() const override { return 0; }
  void set_asleep(bool asleep) override {
    near_->set_asleep(asleep);
    far_->set_asleep(asleep);
  }

 private:
  const std::unique_ptr<link::Flow> near_;
  const std::unique_ptr<link::Flow> far_;
};

}  // namespace weft::device
