// SPDX-License-Identifier: BSD-2-Clause
// What of a domain waits until a counter has come to a value? fi_trigger(3)
#include "triggers.h"

#include "boundary.h"

namespace weft::fabric {

Triggers::~Triggers() {
  if (queue_.load() != nullptr && thread_ != nullptr) thread_->detach(for_foreign_threads());
}

device::Engine& Triggers::for_foreign_threads() {
  if (entered_) return *entered_;
  return *opened_;
}

Result<device::TriggerQueue*> Triggers::queue() {
  if (device::TriggerQueue* const queue = queue_.load()) return queue;
  const std::lock_guard guard(mutex_);
  if (queue_.load() != nullptr) return queue_.load();
  auto opened = device::TriggerQueue::open(locking_);
  if (!opened) return opened.error();
  opened_ = std::move(opened).value();
  if (locking_.biased_lock != nullptr) entered_.emplace(*opened_, *locking_.biased_lock);
  if (Status ok = engines_.widen_all(*opened_); !ok) return ok.error();
  if (thread_ != nullptr) thread_->attach(for_foreign_threads());
  queue_.store(opened_.get());
  return opened_.get();
}

int Triggers::submit(const device::Waiting& waiting, std::unique_ptr<device::Deferred> operation) {
  const auto opened = queue();
  if (!opened) return fabric_status(opened.error());
  opened.value()->submit(waiting, std::move(operation));
  return 0;
}

device::TriggerQueue::OperationList Triggers::withdraw(
    const std::function<bool(const device::Waiting&)>& which) {
  device::TriggerQueue* const queue = queue_.load();
  return queue != nullptr ? queue->withdraw(which) : device::TriggerQueue::OperationList();
}

// What others of the domain wait for may be started by this thread, which came to close something.
void Triggers::drop(const void* owner) {
  const ForeignGuard guard(locking_.biased_lock);
  withdraw([&](const device::Waiting& waiting) { return waiting.owner == owner; });
}

void Triggers::start_due() noexcept {
  if (device::TriggerQueue* const queue = queue_.load()) queue->try_progress();
}

}  // namespace weft::fabric
