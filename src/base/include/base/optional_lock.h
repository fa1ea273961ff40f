// SPDX-License-Identifier: BSD-2-Clause
// Must a lock be taken at all? Only when the caller's threading model lets two threads in.
#pragma once

#include <mutex>

namespace weft {

// A mutex that can be switched off before its first use (fi_domain(3), "threading"). Satisfies
// Lockable. Switching while another thread may hold it is not allowed.
class OptionalLock {
 public:
  explicit OptionalLock(bool needed = true) : needed_(needed) {}

  // Blocks until this thread may enter.
  void lock() {
    if (needed_) mutex_.lock();
  }
  // Enters when nobody is inside; always when the lock is switched off.
  bool try_lock() { return !needed_ || mutex_.try_lock(); }
  // Leaves.
  void unlock() {
    if (needed_) mutex_.unlock();
  }

 private:
  std::mutex mutex_;
  const bool needed_;
};

}  // namespace weft
