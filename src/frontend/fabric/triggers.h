// SPDX-License-Identifier: BSD-2-Clause
// What of a domain waits until a counter has come to a value? fi_trigger(3)
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "device/engine_registry.h"
#include "device/exclusive_engine.h"
#include "device/progress_thread.h"
#include "device/trigger_queue.h"

namespace weft::fabric {

// The triggered operations and deferred work of one domain. Costs nothing until there is any; from
// then on each poll of, and wait for, a queue or counter of the domain drives all of it. Threads as
// `locking` says.
class Triggers {
 public:
  // Both outlive it; `thread` is null where nothing drives the domain but the program.
  Triggers(device::EngineRegistry& engines, device::ProgressThread* thread, const Locking& locking)
      : engines_(engines), thread_(thread), locking_(locking) {}
  ~Triggers();
  Triggers(const Triggers&) = delete;
  Triggers& operator=(const Triggers&) = delete;

  // As device::TriggerQueue::submit(); 0 or a negative fabric errno of opening the queue.
  int submit(const device::Waiting& waiting, std::unique_ptr<device::Deferred> operation);
  // As device::TriggerQueue::withdraw().
  device::TriggerQueue::OperationList withdraw(
      const std::function<bool(const device::Waiting&)>& which);
  // Forgets what has that owner. A control call: any thread that is not inside the domain.
  void drop(const void* owner);
  // Starts what is due, after the program itself has changed a counter.
  void start_due() noexcept;

  // Counts deferred work that no counter of the program's counts.
  device::Counter& unused_counter() { return unused_counter_; }

 private:
  Result<device::TriggerQueue*> queue();
  device::Engine& for_foreign_threads();

  device::EngineRegistry& engines_;
  device::ProgressThread* const thread_;
  const Locking locking_;
  device::Counter unused_counter_{false, device::WaitKind::kNone};
  std::mutex mutex_;  // of the opening
  std::unique_ptr<device::TriggerQueue> opened_;
  std::optional<device::ExclusiveEngine>
      entered_;  // the same for foreign threads, if there is a biased lock
  std::atomic<device::TriggerQueue*> queue_{nullptr};  // the same, once everybody drives it
};

}  // namespace weft::fabric
