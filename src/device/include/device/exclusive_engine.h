// SPDX-License-Identifier: BSD-2-Clause
// How is an engine driven by a thread that its domain's threading model does not let in?
#pragma once

#include "device/engine.h"
#include "os/biased_lock.h"

namespace weft::device {

// An engine for threads that come through the biased lock of its domain: the background thread, and
// those that wait for an event queue, which belongs to no domain. Any thread that is not inside the
// domain. Both outlive it.
class ExclusiveEngine final : public Engine {
 public:
  ExclusiveEngine(Engine& engine, BiasedLock& biased_lock)
      : engine_(engine), biased_lock_(biased_lock) {}

  void progress() override;
  bool fall_asleep() override;
  void wake_up() override;
  int wake_fd() const override { return engine_.wake_fd(); }
  unsigned polls() override { return engine_.polls(); }

 private:
  Engine& engine_;
  BiasedLock& biased_lock_;
};

}  // namespace weft::device
