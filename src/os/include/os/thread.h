// SPDX-License-Identifier: BSD-2-Clause
// What does a thread need that lives beside those of the program?
#pragma once

#include <pthread.h>

#include <functional>

#include "base/result.h"

namespace weft::os {

// A thread that no signal of the program is delivered to. Owned by one thread at a time.
class Thread {
 public:
  Thread() = default;
  // Runs `body`, which must not let an exception out. Errors: EAGAIN of pthread_create(3).
  static Result<Thread> start(std::function<void()> body);

  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&& other) noexcept;
  // Waits for the end of `body`.
  ~Thread();
  // Gives the thread up: in a forked child it does not exist.
  void forget();

 private:
  pthread_t id_{};
  bool running_ = false;
};

}  // namespace weft::os
