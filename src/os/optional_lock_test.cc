// SPDX-License-Identifier: BSD-2-Clause
// Does the lock keep threads apart when it is needed, and stay out of the way when it is not?
#include "os/optional_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace weft {
namespace {

bool another_thread_enters(OptionalLock& lock) {
  bool entered = false;
  std::thread([&] {
    entered = lock.try_lock();
    if (entered) lock.unlock();
  }).join();
  return entered;
}

TEST(OptionalLock, ALockThatIsNeededLetsOneThreadIn) {
  OptionalLock lock;
  lock.lock();
  EXPECT_FALSE(another_thread_enters(lock));
  lock.unlock();
  EXPECT_TRUE(another_thread_enters(lock));
}

TEST(OptionalLock, ALockThatIsSwitchedOffLetsEverybodyIn) {
  OptionalLock lock(false);
  lock.lock();
  EXPECT_TRUE(lock.try_lock());
  EXPECT_TRUE(another_thread_enters(lock));
  lock.unlock();
}

TEST(OptionalLock, ThreadsThatCountUnderItLoseNothing) {
  OptionalLock lock;
  int count = 0;
  const auto work = [&] {
    for (int i = 0; i < 20000; ++i) {
      const std::lock_guard guard(lock);
      ++count;
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(count, 40000);
}

// Longer than it looks and yields: it naps, and notices all the same.
TEST(OptionalLock, WhoeverWaitsForLongEntersInTheEnd) {
  OptionalLock lock;
  std::atomic<bool> entered{false};
  lock.lock();
  std::thread other([&] {
    const std::lock_guard guard(lock);
    entered = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(entered);
  lock.unlock();
  other.join();
  EXPECT_TRUE(entered);
}

}  // namespace
}  // namespace weft
