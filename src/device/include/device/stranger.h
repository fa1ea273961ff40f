// SPDX-License-Identifier: BSD-2-Clause
// How is an engine driven by whoever is not let in by its domain's threading model?
#pragma once

#include <mutex>

#include "base/gate.h"
#include "device/engine.h"

namespace weft::device {

// An engine for those who come through the gate of its domain: whoever waits for an event queue,
// which belongs to no domain. Any thread that is not inside the domain. Both outlive it.
class Stranger final : public Engine {
 public:
  Stranger(Engine& engine, Gate& gate) : engine_(engine), gate_(gate) {}

  void progress() override;
  bool fall_asleep() override;
  void wake_up() override;
  int wake_fd() const override { return engine_.wake_fd(); }

 private:
  Engine& engine_;
  Gate& gate_;
};

}  // namespace weft::device
