// SPDX-License-Identifier: BSD-2-Clause
// Does a signal end a wait for events as it ends read(2)?
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <thread>

#include "abi.h"

namespace weft::verbs {
namespace {

std::atomic<int> handled{0};

void handle_sigusr1(int flags) {
  struct sigaction action {};
  action.sa_handler = [](int) { handled.fetch_add(1); };
  action.sa_flags = flags;
  ASSERT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
}

class InterruptedWait : public testing::Test {
 protected:
  InterruptedWait() {
    ::setenv("WEFT_IFACE", "lo", 1);
    int count = 0;
    ibv_device** const devices = ibv_get_device_list(&count);
    EXPECT_GT(count, 0);
    context_ = ibv_open_device(devices[0]);
    ibv_free_device_list(devices);
    channel_ = ibv_create_comp_channel(context_);
  }
  ~InterruptedWait() override {
    ::signal(SIGUSR1, SIG_DFL);
    EXPECT_EQ(ibv_destroy_comp_channel(channel_), 0);
    EXPECT_EQ(ibv_close_device(context_), 0);
  }

  // The wait goes on under a handler with SA_RESTART, and ends with EINTR under one without.
  static void expect_restart_and_end(const std::function<int()>& wait) {
    handled = 0;
    handle_sigusr1(SA_RESTART);
    std::atomic<bool> ended{false};
    int error = 0;
    std::thread waiter([&] {
      error = wait() == 0 ? 0 : errno;
      ended = true;
    });
    while (handled < 50) {
      ::pthread_kill(waiter.native_handle(), SIGUSR1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_FALSE(ended);
    handle_sigusr1(0);
    while (!ended) {
      ::pthread_kill(waiter.native_handle(), SIGUSR1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    waiter.join();
    EXPECT_EQ(error, EINTR);
  }

  ibv_context* context_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
};

TEST_F(InterruptedWait, ForAnEventOfTheDevice) {
  expect_restart_and_end([this] {
    ibv_async_event event;
    return ibv_get_async_event(context_, &event);
  });
}

TEST_F(InterruptedWait, ForACompletion) {
  expect_restart_and_end([this] {
    ibv_cq* queue = nullptr;
    void* token = nullptr;
    return ibv_get_cq_event(channel_, &queue, &token);
  });
}

}  // namespace
}  // namespace weft::verbs
