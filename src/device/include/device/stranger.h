// SPDX-License-Identifier: BSD-2-Clause
// How is an engine driven by whoever is not let in by its domain's threading model?
#pragma once

#include <mutex>

#include "base/gate.h"
#include "device/engine.h"

namespace weft::device {

// An engine for those who come through the gate of its domain: the background thread, and whoever
// waits for an event queue, which belongs to no domain. Any thread that is not inside the domain.
// Both outlive it. Nobody comes in before he is admitted.
class Stranger final : public Engine {
 public:
  Stranger(Engine& engine, Gate& gate) : engine_(engine), gate_(gate) {}

  void progress() override;
  bool fall_asleep() override;
  void wake_up() override;
  int wake_fd() const override { return engine_.wake_fd(); }
  unsigned polls() override { return engine_.polls(); }
  bool admits_strangers() override { return gate_.admits_strangers(); }

 private:
  Engine& engine_;
  Gate& gate_;
};

}  // namespace weft::device
