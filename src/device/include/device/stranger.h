// SPDX-License-Identifier: BSD-2-Clause
// How is an engine driven by a thread that its domain's threading model does not let in?
#pragma once

#include "device/engine.h"
#include "os/gate.h"

namespace weft::device {

// An engine for threads that come through the gate of its domain: the background thread, and those
// that wait for an event queue, which belongs to no domain. Any thread that is not inside the
// domain. Both outlive it.
class Stranger final : public Engine {
 public:
  Stranger(Engine& engine, Gate& gate) : engine_(engine), gate_(gate) {}

  void progress() override;
  bool fall_asleep() override;
  void wake_up() override;
  int wake_fd() const override { return engine_.wake_fd(); }
  unsigned polls() override { return engine_.polls(); }

 private:
  Engine& engine_;
  Gate& gate_;
};

}  // namespace weft::device
