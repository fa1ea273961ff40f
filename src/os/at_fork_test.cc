// SPDX-License-Identifier: BSD-2-Clause
// Does a fork take the locks of the process in order, and does the child get them?
#include "os/at_fork.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>

namespace weft::os {
namespace {

std::string steps;

AtFork low(
    2, [] { steps += "low "; }, [] { steps += "low! "; }, [] { steps += "low? "; });
AtFork high(
    9, [] { steps += "high "; }, [] { steps += "high! "; }, [] { steps += "high? "; });
AtFork child(5, [] { steps += "child? "; });

std::mutex mutex;
AtFork held(3, mutex);

int status_of(pid_t pid) {
  int status = -1;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return status;
}

TEST(AtFork, EntriesComeByFallingRankAndGoTheOtherWayRound) {
  steps.clear();
  const pid_t pid = fork();
  if (pid == 0) _exit(steps == "high low low? child? high? " ? 0 : 1);
  EXPECT_EQ(status_of(pid), 0);
  EXPECT_EQ(steps, "high low low! high! ");
}

TEST(AtFork, AChildGetsALockThatAnotherThreadUses) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "gcc 12's does not bring its own locks through a fork with threads";
#endif
  std::atomic<bool> stop{false};
  std::atomic<unsigned> rounds{0};
  std::thread user([&] {
    for (; !stop; ++rounds) const std::lock_guard guard(mutex);
  });
  while (rounds == 0) std::this_thread::yield();
  for (int i = 0; i < 20; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(20);
      mutex.lock();
      _exit(0);
    }
    EXPECT_EQ(status_of(pid), 0);
  }
  stop = true;
  user.join();
  EXPECT_TRUE(mutex.try_lock()) << "the parent has let it go";
  mutex.unlock();
}

}  // namespace
}  // namespace weft::os
