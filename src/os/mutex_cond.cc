// SPDX-License-Identifier: BSD-2-Clause
// What does a program sleep on that waits with pthread_cond_wait(3)?
#include "os/mutex_cond.h"

namespace weft::os {

MutexCond::~MutexCond() {
  ::pthread_cond_destroy(&cond_);
  ::pthread_mutex_destroy(&mutex_);
}

bool MutexCond::try_wake() {
  if (::pthread_mutex_trylock(&mutex_) != 0) return false;
  ::pthread_cond_broadcast(&cond_);
  ::pthread_mutex_unlock(&mutex_);
  return true;
}

}  // namespace weft::os
