// SPDX-License-Identifier: BSD-2-Clause
// How is the condition variable of a program signalled? (fi_poll(3), FI_WAIT_MUTEX_COND)
#include "device/cond_signaller.h"

#include <utility>

namespace weft::device {

CondSignaller::CondSignaller(const EngineGroup& group, std::shared_ptr<ProgressThread> thread)
    : group_(group), thread_(std::move(thread)) {}

Result<std::unique_ptr<CondSignaller>> CondSignaller::open(const EngineGroup& group) {
  auto thread = ProgressThread::get();
  if (!thread) return thread.error();
  if (Status ok = thread.value()->start(); !ok) return ok.error();
  std::unique_ptr<CondSignaller> signaller(new CondSignaller(group, std::move(thread).value()));
  signaller->thread_->attach(*signaller);
  return signaller;
}

CondSignaller::~CondSignaller() { thread_->detach(*this); }

void CondSignaller::arm() {
  armed_.store(true);
  thread_->look_again();
}

bool CondSignaller::has_news() const {
  return armed_.load() && os::wait_readable(group_.descriptor(), std::chrono::milliseconds(0));
}

void CondSignaller::progress() {
  if (!has_news()) return;
  // First, so that it stays armed if a thread arms it meanwhile.
  armed_.store(false);
  if (!object_.try_wake()) armed_.store(true);
}

// While the mutex is held there is something to do: to try again.
bool CondSignaller::fall_asleep() { return !has_news(); }

}  // namespace weft::device
