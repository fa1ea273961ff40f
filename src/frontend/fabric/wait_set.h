// SPDX-License-Identifier: BSD-2-Clause
// What is a wait set? fi_poll(3)
#pragma once

#include <rdma/fi_eq.h>

#include <atomic>
#include <mutex>
#include <vector>

#include "base/usable.h"
#include "device/engine.h"
#include "fabric.h"
#include "fid_object.h"
#include "wait_point.h"

namespace weft::fabric {

// The object behind a fid_wait: waits for news of any of the objects that were opened with it. Any
// thread.
class WaitSet : public ChildObject<WaitSet, fid_wait, Fabric>, public Usable {
 public:
  WaitSet(Fabric& fabric, const WaitWish& wish);

  Fabric& fabric() const { return parent(); }
  WaitPoint& wait_point() { return wait_point_; }
  // fi_wait(3): 0 when a member has news or was signalled, -FI_ETIMEDOUT.
  int wait(int timeout_ms);
  // Ends one wait() (fi_cq_signal(3) of a member).
  void signal() { signalled_.store(true); }

  // A member comes; it takes part as `engine`. Errors: those of epoll_ctl(2).
  Status join(WaitPoint& member, device::Engine& engine);
  void leave(WaitPoint& member, device::Engine& engine);

 private:
  bool has_news() const;

  std::atomic<bool> signalled_{false};
  mutable std::mutex mutex_;
  std::vector<WaitPoint*> members_;
  device::EngineGroup engines_;
  WaitPoint wait_point_;
};

}  // namespace weft::fabric
