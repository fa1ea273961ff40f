// SPDX-License-Identifier: BSD-2-Clause
// Does the lock keep threads apart when it is needed, and stay out of the way when it is not?
#include "os/optional_lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "os/thread_state_support.h"

namespace weft {
namespace {

bool another_thread_enters(OptionalLock& lock) {
  bool entered = false;
  std::thread([&] {
    entered = std::unique_lock(lock.inner(), std::try_to_lock).owns_lock();
  }).join();
  return entered;
}

TEST(OptionalLock, ALockThatIsNeededLetsOneThreadIn) {
  OptionalLock lock;
  {
    const Section section(lock);
    EXPECT_FALSE(another_thread_enters(lock));
  }
  EXPECT_TRUE(another_thread_enters(lock));
}

TEST(OptionalLock, ALockThatIsSwitchedOffLetsEveryThreadIn) {
  OptionalLock lock(false);
  const Section section(lock);
  EXPECT_TRUE(lock.inner().try_lock());
  EXPECT_TRUE(another_thread_enters(lock));
}

TEST(OptionalLock, ThreadsThatCountUnderItLoseNothing) {
  OptionalLock lock;
  int count = 0;
  const auto work = [&] {
    for (int i = 0; i < 20000; ++i) {
      const Section section(lock);
      ++count;
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(count, 40000);
}

// Longer than it looks and yields: it naps, and notices all the same.
TEST(OptionalLock, AThreadThatWaitsForLongEntersInTheEnd) {
  OptionalLock lock;
  std::atomic<bool> held{false};
  std::atomic<bool> left{false};
  std::thread holder([&, waiter = ::gettid()] {
    const Section section(lock);
    held = true;
    os::wait_until_asleep(waiter);
    left = true;
  });
  while (!held) std::this_thread::yield();
  {
    const Section section(lock);
    EXPECT_TRUE(left);
  }
  holder.join();
}

}  // namespace
}  // namespace weft
