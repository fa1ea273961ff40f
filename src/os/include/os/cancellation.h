// SPDX-License-Identifier: BSD-2-Clause
// Where may a thread of the program be cancelled inside of this library? pthread_cancel(3)
//
// Only where it sleeps on behalf of the program (sleep_or_cancelled(), and the condition
// variable of a thread that follows another one): there it holds no lock, and destructors undo what
// it has announced. Everywhere else a cancellation would leave locks held and shared memory half
// written. So no other function of this module is a cancellation point (pthreads(7)): calls of the
// data path go to the kernel directly (direct_calls.h), the others disable cancellation meanwhile.
#pragma once

#include <chrono>

namespace weft::os {

// While one lives its thread is not cancelled. A request that comes meanwhile stays pending.
class CancellationOff {
 public:
  CancellationOff();
  ~CancellationOff();
  CancellationOff(const CancellationOff&) = delete;
  CancellationOff& operator=(const CancellationOff&) = delete;

 private:
  int before_;
};

// Acts on a request that is pending (pthread_testcancel(3)): for loops that never sleep.
void cancellation_point();

// Sleeps for that long. No cancellation point.
void nap(std::chrono::nanoseconds time);

}  // namespace weft::os
