// SPDX-License-Identifier: BSD-2-Clause
// Is everything signalled that would make the descriptor readable, and no caller ever blocked?
#include "device/cond_signaller.h"

#include <gtest/gtest.h>

#include <ctime>
#include <thread>

namespace weft::device {
namespace {

class CondSignallerTest : public testing::Test {
 protected:
  CondSignallerTest() {
    EXPECT_TRUE(group_.open().ok());
    signaller_ = CondSignaller::open(group_).value();
  }
  pthread_mutex_t* mutex() { return signaller_->object().mutex(); }
  // As a program waits: the mutex is held from the question on. False: nothing was signalled.
  bool wait(int seconds) {
    timespec end{};
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += seconds;
    pthread_mutex_lock(mutex());
    bool woken = true;
    if (group_.prepare_wait([&] { return news_.load(); })) {
      signaller_->arm();
      woken = pthread_cond_timedwait(signaller_->object().cond(), mutex(), &end) == 0;
    }
    pthread_mutex_unlock(mutex());
    return woken;
  }

  EngineGroup group_{true, WaitKind::kDescriptor};
  std::atomic<bool> news_{false};
  std::unique_ptr<CondSignaller> signaller_;
};

TEST_F(CondSignallerTest, NewsWakeAWaitingThread) {
  for (int round = 0; round < 200; ++round) {
    news_ = false;
    std::thread other([&] {
      for (int i = 0; i < round; ++i) std::this_thread::yield();
      news_ = true;
      group_.notify();
    });
    while (!news_) ASSERT_TRUE(wait(20)) << "round " << round;
    other.join();
  }
}

TEST_F(CondSignallerTest, WithoutNewsNoThreadIsWoken) { EXPECT_FALSE(wait(1)); }

TEST_F(CondSignallerTest, AHeldMutexDelaysTheSignalAndBlocksNoThread) {
  ASSERT_TRUE(group_.prepare_wait([] { return false; }));
  pthread_mutex_lock(mutex());
  signaller_->arm();
  group_.notify();  // from the thread that holds the mutex
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  timespec end{};
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 20;
  EXPECT_EQ(pthread_cond_timedwait(signaller_->object().cond(), mutex(), &end), 0);
  // Closing while the mutex is held and a signal is due does not hang either.
  ASSERT_TRUE(group_.prepare_wait([] { return false; }));
  signaller_->arm();
  group_.notify();
  std::thread closer([&] { EXPECT_GE(signaller_->wake_fd(), -1); });
  closer.join();
  pthread_mutex_unlock(mutex());
}

}  // namespace
}  // namespace weft::device
