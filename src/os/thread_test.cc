// SPDX-License-Identifier: BSD-2-Clause
// Does a background thread keep out of what is the program's?
#include "os/thread.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "os/thread_count_support.h"

namespace weft::os {
namespace {

TEST(Thread, RunsItsBodyAndIsWaitedFor) {
  std::atomic<bool> ran{false};
  {
    auto thread = Thread::start([&] { ran = true; }).value();
  }
  EXPECT_TRUE(ran);
}

TEST(Thread, NoSignalOfTheProgramIsDeliveredToIt) {
  sigset_t mask{};
  {
    auto thread = Thread::start([&] { pthread_sigmask(SIG_BLOCK, nullptr, &mask); }).value();
  }
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD}) {
    EXPECT_EQ(sigismember(&mask, number), 1) << number;
  }
  for (const int fault : {SIGSEGV, SIGBUS}) EXPECT_EQ(sigismember(&mask, fault), 0) << fault;
  sigset_t own{};
  pthread_sigmask(SIG_BLOCK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGUSR1), 0) << "the creator's mask is as before";
}

TEST(Thread, AChildForgetsIt) {
  std::atomic<bool> stop{false};
  auto thread = Thread::start([&] {
                  while (!stop) usleep(100);
                }).value();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    thread.forget();
    thread = Thread();
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  stop = true;
}

// Thousands of them: the kernel removes a thread some time after pthread_join has returned.
TEST(CountThreads, DoesNotCountOneThatWasJoined) {
  std::thread([] {}).join();  // a sanitizer begins a thread of its own with the first one
  const std::size_t before = count_threads();
  for (int i = 0; i < 2000; ++i) {
    std::size_t inside = 0;
    std::thread([&] { inside = count_threads(); }).join();
    ASSERT_EQ(inside, before + 1);
    ASSERT_EQ(count_threads(), before) << i;
  }
}

}  // namespace
}  // namespace weft::os
