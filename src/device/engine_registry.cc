// SPDX-License-Identifier: BSD-2-Clause
// Which engines does a queue or counter drive besides those that report there?
#include "device/engine_registry.h"

#include <algorithm>

namespace weft::device {
namespace {

Status attach_all(const std::vector<EngineGroup*>& groups, const std::vector<Engine*>& engines) {
  for (EngineGroup* group : groups) {
    for (Engine* engine : engines) {
      if (Status ok = group->attach(*engine); !ok) return ok;
    }
  }
  return {};
}

void detach_all(const std::vector<EngineGroup*>& groups, const std::vector<Engine*>& engines) {
  for (EngineGroup* group : groups) {
    for (Engine* engine : engines) group->detach(*engine);
  }
}

}  // namespace

Status EngineRegistry::join(EngineGroup& group) {
  const std::lock_guard guard(mutex_);
  groups_.push_back(&group);
  Status joined = attach_all({&group}, common_);
  if (!joined) groups_.pop_back();
  return joined;
}

void EngineRegistry::leave(EngineGroup& group) {
  const std::lock_guard guard(mutex_);
  std::erase(groups_, &group);
  std::erase(wide_, &group);
}

Status EngineRegistry::join(Engine& endpoint) {
  const std::lock_guard guard(mutex_);
  endpoints_.push_back(&endpoint);
  Status joined = attach_all(wide_, {&endpoint});
  if (joined) return joined;
  detach_all(wide_, {&endpoint});
  endpoints_.pop_back();
  return joined;
}

void EngineRegistry::leave(Engine& endpoint) {
  const std::lock_guard guard(mutex_);
  if (std::erase(endpoints_, &endpoint) != 0) detach_all(wide_, {&endpoint});
}

// After an error it drives some of them, which leave it as all others do.
Status EngineRegistry::widen(EngineGroup& group) {
  const std::lock_guard guard(mutex_);
  if (std::find(wide_.begin(), wide_.end(), &group) == wide_.end()) wide_.push_back(&group);
  return attach_all({&group}, endpoints_);
}

Status EngineRegistry::join_all(Engine& engine) {
  const std::lock_guard guard(mutex_);
  common_.push_back(&engine);
  Status joined = attach_all(groups_, {&engine});
  if (joined) return joined;
  detach_all(groups_, {&engine});
  common_.pop_back();
  return joined;
}

void EngineRegistry::leave_all(Engine& engine) {
  const std::lock_guard guard(mutex_);
  std::erase(common_, &engine);
  detach_all(groups_, {&engine});
}

}  // namespace weft::device
