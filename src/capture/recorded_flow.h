// SPDX-License-Identifier: BSD-2-Clause
// What does an endpoint ask of a peer that it reaches without packets?
#pragma once

#include <array>
#include <list>
#include <memory>

#include "link/flow.h"
#include "peer.h"

namespace weft::capture {

// A flow that writes down what goes through. Accesses and atomic operations that stay pending are
// not: those of the link within the host end at once.
class RecordedFlow final : public link::Flow, link::FlowSink {
 public:
  RecordedFlow(std::unique_ptr<link::Flow> flow, Recorder& recorder, Recorder::Peer& peer)
      : flow_(std::move(flow)), recorder_(recorder), peer_(peer) {}
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
  // A request that has not ended.
  struct Pending {
    std::list<Pending>::iterator self;
    void* cookie = nullptr;
    bool offered = false;        // the peer says when it wants the message
    bool wants_ack = false;      // the peer says when it has the message
    std::uint32_t exchange = 0;  // by which it names the message
    std::uint64_t length = 0;
    std::size_t count = 0;
    std::array<LocalRange, link::kMaxPieces> pieces{};
  };

  Pending& remember(void* cookie);
  void forget(Pending& pending) { pending_.erase(pending.self); }
  void sent(const link::SendRequest& request, Pending& pending);
  void accessed(const link::AccessRequest& request, const RequestVerdict& verdict);
  void changed(const link::AtomicRequest& request, const link::Outcome& outcome);
  void ended(void* cookie, int error, int detail) override;

  const std::unique_ptr<link::Flow> flow_;
  Recorder& recorder_;
  Recorder::Peer& peer_;
  std::list<Pending> pending_;
  link::FlowSink* sink_ = nullptr;
};

}  // namespace weft::capture
