// SPDX-License-Identifier: BSD-2-Clause
// What do the handles of an XRC domain, and those of an XRC target, share? (annex A14)
#pragma once

#include <memory>
#include <vector>

#include "base/mutex.h"
#include "objects.h"

namespace weft::verbs {

// An XRC target, which lives as long as any of its handles (ibv_open_qp(3)); all get its events.
struct XrcTarget final : queue::QpEventSink {
  XrcTarget(std::shared_ptr<XrcDomain> of, std::shared_ptr<queue::QpPort> driven)
      : domain(std::move(of)), port(std::move(driven)) {}
  void happened(queue::QpEvent event) override;
  // The handle gets the events of the target from now on, or not any more.
  void add(VerbsQp& handle);
  void remove(VerbsQp& handle);

  const std::shared_ptr<XrcDomain> domain;
  const std::shared_ptr<queue::QpPort> port;
  Mutex mutex;
  std::vector<VerbsQp*> handles WEFT_GUARDED_BY(mutex);
  std::unique_ptr<queue::QueuePair> core;  // the last one: it goes first
};

// The shared receive queues and the targets of a domain, whichever of its handles made them. Any
// thread.
struct XrcDomain final : queue::SharedReceives {
  XrcDomain();
  bool find(std::uint32_t number, queue::ReceiveEnd& end) override;
  std::uint32_t group() const override { return number; }
  void add(VerbsSrq& queue);
  // On return no target uses the queue.
  void remove(VerbsSrq& queue);
  void add(const std::shared_ptr<XrcTarget>& target);
  // The target of that QPN, or null.
  std::shared_ptr<XrcTarget> target(std::uint32_t qpn);

  const std::uint32_t number;
  Mutex mutex;  // taken with the lock of a target's port held
  std::vector<VerbsSrq*> queues WEFT_GUARDED_BY(mutex);
  std::vector<std::weak_ptr<XrcTarget>> targets WEFT_GUARDED_BY(mutex);
};

}  // namespace weft::verbs
