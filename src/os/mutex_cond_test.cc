// SPDX-License-Identifier: BSD-2-Clause
// Is a waiter woken, and never at the price of blocking the waker?
#include "os/mutex_cond.h"

#include <gtest/gtest.h>

#include <thread>

namespace weft::os {
namespace {

TEST(MutexCond, WakesAWaiter) {
  MutexCond object;
  bool waiting = false;
  std::thread waiter([&] {
    pthread_mutex_lock(object.mutex());
    waiting = true;
    pthread_cond_wait(object.cond(), object.mutex());
    waiting = false;
    pthread_mutex_unlock(object.mutex());
  });
  // The waiter lets the mutex go only when it waits.
  const auto waits = [&] {
    pthread_mutex_lock(object.mutex());
    const bool now = waiting;
    pthread_mutex_unlock(object.mutex());
    return now;
  };
  while (!waits()) std::this_thread::yield();
  while (!object.try_wake()) std::this_thread::yield();
  waiter.join();
  EXPECT_FALSE(waiting);
}

TEST(MutexCond, GivesUpWhileTheMutexIsHeld) {
  MutexCond object;
  pthread_mutex_lock(object.mutex());
  EXPECT_FALSE(object.try_wake());
  pthread_mutex_unlock(object.mutex());
  EXPECT_TRUE(object.try_wake());
}

}  // namespace
}  // namespace weft::os
