// SPDX-License-Identifier: BSD-2-Clause
// How is an engine driven by a thread that its domain's threading model does not let in?
#include "device/exclusive_engine.h"

#include "os/optional_lock.h"

namespace weft::device {

void ExclusiveEngine::progress() {
  const ForeignGuard guard(&biased_lock_);
  engine_.progress();
}

bool ExclusiveEngine::fall_asleep() {
  const ForeignGuard guard(&biased_lock_);
  return engine_.fall_asleep();
}

void ExclusiveEngine::wake_up() {
  const ForeignGuard guard(&biased_lock_);
  engine_.wake_up();
}

}  // namespace weft::device
