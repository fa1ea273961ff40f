// SPDX-License-Identifier: BSD-2-Clause
// What does an endpoint ask of a peer that it reaches without packets?
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>

#include "link/flow.h"
#include "peer.h"

namespace weft::capture {

// A flow that writes down what goes through. Accesses and atomic operations that stay pending are
// not: those of the link within the host end at once.
class RecordedFlow final : public link::Flow, link::FlowSink {
 public:
  RecordedFlow(std::unique_ptr<link::Flow> flow, Peers& peers, RecordedPeer& peer)
      : flow_(std::move(flow)), peers_(peers), peer_(peer) {}
  ~RecordedFlow() override;

  link::Outcome send(const link::SendRequest& request) override;
  link::Outcome access(const link::AccessRequest& request) override;
  link::Outcome atomic(const link::AtomicRequest& request) override;
  bool reached() const override { return flow_->reached(); }
  void doubt() override { flow_->doubt(); }
  bool busy() const override { return flow_->busy(); }
  bool ready() const override { return flow_->ready(); }
  void progress(link::FlowSink& sink) override;
  link::PeerState check_peer(link::FlowSink& sink) override;
  bool cancel(void* cookie, link::FlowSink& sink) override;
  void give_up(link::FlowSink& sink) override;
  int process() const override { return flow_->process(); }
  void set_asleep(bool asleep) override { flow_->set_asleep(asleep); }

 private:
  std::optional<memory::Accessed> verdict_of(const link::Outcome& outcome) const;
  void ended(void* cookie, int error, int detail) override;

  const std::unique_ptr<link::Flow> flow_;
  Peers& peers_;
  RecordedPeer& peer_;
  std::unordered_map<const void*, link::Arrival> sent_;  // that have not ended, by cookie
  link::FlowSink* sink_ = nullptr;
};

}  // namespace weft::capture
