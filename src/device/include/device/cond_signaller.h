// SPDX-License-Identifier: BSD-2-Clause
// How is the condition variable of a program signalled? (fi_poll(3), FI_WAIT_MUTEX_COND)
#pragma once

#include <atomic>
#include <memory>

#include "device/engine.h"
#include "device/progress_thread.h"
#include "os/mutex_cond.h"

namespace weft::device {

// Turns what makes a group's descriptor readable into a signal: the background thread sleeps on the
// descriptor for the program. It never blocks on the mutex, which the program may hold while it
// calls in here.
class CondSignaller final : public Engine {
 public:
  // Errors: those of ProgressThread::get() and start().
  static Result<std::unique_ptr<CondSignaller>> open(const EngineGroup& group);
  ~CondSignaller() override;

  // What the program sleeps on.
  os::MutexCond& object() { return object_; }
  // After the group's prepare_wait() has allowed it: what makes the descriptor readable is
  // signalled, once, from now on. Any thread.
  void arm();

  // For the background thread.
  void progress() override;
  bool fall_asleep() override;
  void wake_up() override {}
  int wake_fd() const override { return armed_.load() ? group_.descriptor() : -1; }

 private:
  CondSignaller(const EngineGroup& group, std::shared_ptr<ProgressThread> thread);
  bool has_news() const;

  const EngineGroup& group_;
  const std::shared_ptr<ProgressThread> thread_;
  os::MutexCond object_;
  std::atomic<bool> armed_{false};
};

}  // namespace weft::device
