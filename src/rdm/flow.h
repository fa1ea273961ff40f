// SPDX-License-Identifier: BSD-2-Clause
// How does the user of an endpoint hold the way to one peer?
#pragma once

#include <new>

#include "contexts.h"
#include "link/flow.h"

namespace weft::rdm {

// A link::Flow over the sender of a context, for as long as that exists.
class RdmFlow final : public link::Flow {
 public:
  RdmFlow(const Contexts& contexts, std::uint32_t context)
      : contexts_(contexts), context_(context) {}
  ~RdmFlow() override {
    try {
      if (RdmSender* out = sender()) out->release();
    } catch (const std::bad_alloc&) {
      // It is forgotten with the engine.
    }
  }

  link::Outcome send(const link::SendRequest& request) override {
    RdmSender* out = sender();
    return out == nullptr ? gone() : out->send(request);
  }
  link::Outcome access(const link::AccessRequest& request) override {
    RdmSender* out = sender();
    return out == nullptr ? gone() : out->accesses().access(request);
  }
  link::Outcome atomic(const link::AtomicRequest& request) override {
    RdmSender* out = sender();
    return out == nullptr ? gone() : out->accesses().atomic(request);
  }
  bool reached() const override {
    RdmSender* out = sender();
    return out == nullptr || out->flow().phase() != FlowPhase::kAsking;
  }
  void suspect() override {
    if (RdmSender* out = sender()) out->flow().suspect();
  }
  bool busy() const override {
    RdmSender* out = sender();
    return out != nullptr && (out->operations().busy() || out->operations().has_reports());
  }
  bool ready() const override {
    RdmSender* out = sender();
    return out != nullptr && out->operations().has_reports();
  }
  void progress(link::FlowSink& sink) override {
    if (RdmSender* out = sender()) out->operations().report(sink);
  }
  link::PeerState check_peer(link::FlowSink& sink) override {
    RdmSender* out = sender();
    if (out == nullptr) return link::PeerState::kDied;
    out->operations().report(sink);
    return out->flow().peer_state();
  }
  bool cancel(void* cookie, link::FlowSink& sink) override {
    RdmSender* out = sender();
    if (out == nullptr || !out->cancel(cookie)) return false;
    out->operations().report(sink);
    return true;
  }
  void give_up(link::FlowSink& sink) override {
    RdmSender* out = sender();
    if (out == nullptr) return;
    out->give_up();
    out->operations().report(sink);
  }
  int process() const override { return 0; }
  void set_asleep(bool) override {}

 private:
  static link::Outcome gone() { return link::Outcome::failed(ECONNRESET); }
  RdmSender* sender() const {
    Context* context = contexts_.find(context_);
    return context != nullptr ? context->out.get() : nullptr;
  }

  const Contexts& contexts_;
  const std::uint32_t context_;
};

}  // namespace weft::rdm
