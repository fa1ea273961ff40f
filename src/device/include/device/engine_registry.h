// SPDX-License-Identifier: BSD-2-Clause
// Which engines does a queue or counter drive besides those that report there?
#pragma once

#include <mutex>
#include <vector>

#include "base/result.h"
#include "device/engine.h"

namespace weft::device {

// The engine groups and endpoints of one domain. What counts in a counter need not come from an
// endpoint that is bound to it: a region may count there, or an operation that is deferred until
// another counter changes. Groups and endpoints leave before they go. Any thread. Errors: those of
// EngineGroup::attach(), after which the group or endpoint has not joined.
class EngineRegistry {
 public:
  // A group of the domain.
  Status join(EngineGroup& group);
  void leave(EngineGroup& group);
  // An endpoint of the domain. Groups that it reports to it attaches itself to.
  Status join(Engine& endpoint);
  void leave(Engine& endpoint);

  // From now on this group, which has joined, drives every endpoint of the domain.
  Status widen(EngineGroup& group);
  // From now on every group drives every endpoint, and `engine`, which outlives the groups. Once.
  Status widen_all(Engine& engine);

 private:
  Status widen_here(EngineGroup& group);

  std::mutex mutex_;
  std::vector<EngineGroup*> groups_;
  std::vector<EngineGroup*> wide_;
  std::vector<Engine*> endpoints_;
  Engine* common_ = nullptr;  // that of widen_all()
};

}  // namespace weft::device
