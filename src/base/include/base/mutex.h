// SPDX-License-Identifier: BSD-2-Clause
// How are lock rules written so that the lint checks them?
//
// clang's thread safety analysis reads the annotations (tools/ci/check_locks.py); other compilers
// see a std::mutex and its guard. A member that a lock guards has WEFT_GUARDED_BY, a function that
// is called with it held WEFT_REQUIRES. A function that is called through an interface, where the
// lock of another object is held, begins with assert_held().
#pragma once

#include <mutex>

#ifdef __clang__
#define WEFT_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define WEFT_THREAD_ATTRIBUTE(x)
#endif
#define WEFT_GUARDED_BY(x) WEFT_THREAD_ATTRIBUTE(guarded_by(x))
#define WEFT_REQUIRES(...) WEFT_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define WEFT_EXCLUDES(...) WEFT_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define WEFT_RETURNS_LOCK(x) WEFT_THREAD_ATTRIBUTE(lock_returned(x))
#define WEFT_UNCHECKED WEFT_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace weft {

class WEFT_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  void lock() WEFT_THREAD_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }
  bool try_lock() WEFT_THREAD_ATTRIBUTE(try_acquire_capability(true)) { return mutex_.try_lock(); }
  void unlock() WEFT_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }
  // Tells the analysis that the caller's caller holds it. Checks nothing when it runs.
  void assert_held() const WEFT_THREAD_ATTRIBUTE(assert_capability(this)) {}

 private:
  std::mutex mutex_;
};

// Holds a mutex from its beginning to its end, or to unlock().
class WEFT_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) WEFT_THREAD_ATTRIBUTE(acquire_capability(mutex))
      : mutex_(&mutex) {
    mutex.lock();
  }
  // The caller has locked it.
  MutexLock(Mutex& mutex, std::adopt_lock_t) WEFT_THREAD_ATTRIBUTE(requires_capability(mutex))
      : mutex_(&mutex) {}
  ~MutexLock() WEFT_THREAD_ATTRIBUTE(release_capability()) {
    if (mutex_ != nullptr) mutex_->unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void unlock() WEFT_THREAD_ATTRIBUTE(release_capability()) {
    mutex_->unlock();
    mutex_ = nullptr;
  }

 private:
  Mutex* mutex_;
};

}  // namespace weft
