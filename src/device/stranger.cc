// SPDX-License-Identifier: BSD-2-Clause
// How is an engine driven by a thread that its domain's threading model does not let in?
#include "device/stranger.h"

#include "os/optional_lock.h"

namespace weft::device {

void Stranger::progress() {
  const ForeignGuard guard(&gate_);
  engine_.progress();
}

bool Stranger::fall_asleep() {
  const ForeignGuard guard(&gate_);
  return engine_.fall_asleep();
}

void Stranger::wake_up() {
  const ForeignGuard guard(&gate_);
  engine_.wake_up();
}

}  // namespace weft::device
