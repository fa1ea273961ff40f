// SPDX-License-Identifier: BSD-2-Clause
// Where may a thread of the program be cancelled inside of this library? pthread_cancel(3)
#include "os/cancellation.h"

#include <pthread.h>

#include <thread>

namespace weft::os {

CancellationOff::CancellationOff() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }

CancellationOff::~CancellationOff() {
  int disabled = 0;
  ::pthread_setcancelstate(before_, &disabled);
}

void cancellation_point() { ::pthread_testcancel(); }

void nap(std::chrono::nanoseconds time) {
  const CancellationOff off;
  std::this_thread::sleep_for(time);
}

}  // namespace weft::os
