// SPDX-License-Identifier: BSD-2-Clause
// Which engines does a queue or counter drive besides those that report there?
#include "device/engine_registry.h"

#include <algorithm>
#include <iterator>

namespace weft::device {

// After an error the group drives some of them, which leave it as all others do.
Status EngineRegistry::widen_here(EngineGroup& group) {
  if (std::find(wide_.begin(), wide_.end(), &group) == wide_.end()) wide_.push_back(&group);
  for (Engine* endpoint : endpoints_) {
    if (Status ok = group.attach(*endpoint); !ok) return ok;
  }
  return {};
}

Status EngineRegistry::join(EngineGroup& group) {
  const std::lock_guard guard(mutex_);
  if (common_ != nullptr) {
    if (Status ok = group.attach(*common_); !ok) return ok;
    if (Status ok = widen_here(group); !ok) return ok;
  }
  groups_.push_back(&group);
  return {};
}

// Programs close many objects in the opposite order, mostly.
void EngineRegistry::leave(EngineGroup& group) {
  const std::lock_guard guard(mutex_);
  const auto found = std::find(groups_.rbegin(), groups_.rend(), &group);
  if (found != groups_.rend()) groups_.erase(std::next(found).base());
  std::erase(wide_, &group);
}

Status EngineRegistry::join(Engine& endpoint) {
  const std::lock_guard guard(mutex_);
  Status joined;
  for (EngineGroup* group : wide_) {
    if (joined) joined = group->attach(endpoint);
  }
  if (joined) {
    endpoints_.push_back(&endpoint);
  } else {
    for (EngineGroup* group : wide_) group->detach(endpoint);
  }
  return joined;
}

void EngineRegistry::leave(Engine& endpoint) {
  const std::lock_guard guard(mutex_);
  if (std::erase(endpoints_, &endpoint) == 0) return;
  for (EngineGroup* group : wide_) group->detach(endpoint);
}

Status EngineRegistry::widen(EngineGroup& group) {
  const std::lock_guard guard(mutex_);
  return widen_here(group);
}

Status EngineRegistry::widen_all(Engine& engine) {
  const std::lock_guard guard(mutex_);
  Status widened;
  for (EngineGroup* group : groups_) {
    if (widened) widened = group->attach(engine);
    if (widened) widened = widen_here(*group);
  }
  if (widened) {
    common_ = &engine;
  } else {
    for (EngineGroup* group : groups_) group->detach(engine);
  }
  return widened;
}

}  // namespace weft::device
