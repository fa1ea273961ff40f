// SPDX-License-Identifier: BSD-2-Clause
// How does a thread that a threading model does not know of get into what is used without locks?
#include "os/biased_lock.h"

#include "os/barrier.h"

namespace weft {

// An owner that is inside already goes on: the foreign thread waits for it.
unsigned BiasedLock::enter_unbiased() {
  if (is_foreign()) return kForeign;
  const unsigned depth = inside_.load(std::memory_order_relaxed);
  if (depth == 0) {
    const std::lock_guard guard(mutex_);
    inside_.store(1, std::memory_order_relaxed);
    if (++quiet_entries_ >= kQuietEntries) revoked_.store(false, std::memory_order_relaxed);
    return 0;
  }
  inside_.store(depth + 1, std::memory_order_relaxed);
  return depth;
}

// The mutex orders its holders. The barrier is for owners that come in without it.
void BiasedLock::enter_foreign() {
  if (is_foreign()) {
    ++nested_;
    return;
  }
  mutex_.lock();
  foreign_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  quiet_entries_ = 0;
  if (!revoked_.load(std::memory_order_relaxed)) {
    revoked_.store(true, std::memory_order_release);
    os::process_barrier();
  }
  spin_until([this] { return inside_.load(std::memory_order_acquire) == 0; });
}

void BiasedLock::leave_foreign() {
  if (nested_ != 0) {
    --nested_;
    return;
  }
  foreign_.store({}, std::memory_order_relaxed);
  mutex_.unlock();
}

}  // namespace weft
