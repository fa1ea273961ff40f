// SPDX-License-Identifier: BSD-2-Clause
// What does a program sleep on that waits with pthread_cond_wait(3)?
#pragma once

#include <pthread.h>

namespace weft::os {

// A mutex and a condition variable that are handed to the program. Any thread.
class MutexCond {
 public:
  MutexCond() = default;
  ~MutexCond();
  MutexCond(const MutexCond&) = delete;
  MutexCond& operator=(const MutexCond&) = delete;

  pthread_mutex_t* mutex() { return &mutex_; }
  pthread_cond_t* cond() { return &cond_; }
  // Wakes the waiting threads. False, and nothing done, while a thread holds the mutex: the program
  // may be about to wait, or hold it for as long as it likes.
  bool try_wake();

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t cond_ = PTHREAD_COND_INITIALIZER;
};

}  // namespace weft::os
