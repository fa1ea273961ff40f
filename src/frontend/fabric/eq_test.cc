// SPDX-License-Identifier: BSD-2-Clause
// Is the work of an event queue done once, by the program or by the thread in the background?
#include "eq.h"

#include <gtest/gtest.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include <chrono>

#include "os/event.h"

namespace weft::fabric {
namespace {

// The program's calls, and those of the thread to the engine of the queue.
class QueuedWork : public testing::Test {
 protected:
  QueuedWork() {
    fi_fabric_attr attributes{};
    attributes.name = name_;
    attributes.api_version = FI_VERSION(1, 9);
    EXPECT_EQ(Fabric::open(attributes, Options{}, &fabric_, nullptr), 0);
    EXPECT_EQ(fi_eq_open(fabric_, nullptr, &eq_, nullptr), 0);
    thread_ = queue().background_work().value();
  }
  ~QueuedWork() override {
    EXPECT_EQ(fi_close(&eq_->fid), 0);
    EXPECT_EQ(fi_close(&fabric_->fid), 0);
  }

  EventQueue& queue() { return EventQueue::from(eq_); }
  void push(int status = 0) {
    queue().push_work(FI_MR_COMPLETE, object_, [this, status] {
      ++done_;
      return status;
    });
  }
  bool is_rung() { return os::wait_readable(thread_->wake_fd(), std::chrono::milliseconds(0)); }
  ssize_t read(std::uint64_t flags = 0) {
    fi_eq_entry entry{};
    std::uint32_t event = 0;
    return fi_eq_read(eq_, &event, &entry, sizeof entry, flags);
  }

  static constexpr auto kRead = static_cast<ssize_t>(sizeof(fi_eq_entry));
  char name_[16] = "127.0.0.0/8";
  fid_fabric* fabric_ = nullptr;
  fid_eq* eq_ = nullptr;
  device::Engine* thread_ = nullptr;
  fid object_{};
  int done_ = 0;
};

TEST_F(QueuedWork, IsDoneByTheReaderOrTheThread) {
  push();
  EXPECT_EQ(read(), kRead);
  EXPECT_EQ(done_, 1);
  push();
  thread_->progress();
  EXPECT_EQ(done_, 2);
  EXPECT_EQ(read(), kRead);
  EXPECT_EQ(read(), -FI_EAGAIN);
  EXPECT_EQ(done_, 2);
}

TEST_F(QueuedWork, BehindUnreadEventsIsDoneByTheThread) {
  push();
  thread_->progress();
  push(-FI_EFAULT);
  thread_->progress();
  EXPECT_EQ(done_, 2);
  EXPECT_EQ(read(), kRead);
  EXPECT_EQ(read(), -FI_EAVAIL);
  fi_eq_err_entry error{};
  EXPECT_EQ(fi_eq_readerr(eq_, &error, 0), static_cast<ssize_t>(sizeof error));
  EXPECT_EQ(error.err, FI_EFAULT);
}

TEST_F(QueuedWork, WakesTheThreadOnce) {
  EXPECT_TRUE(thread_->fall_asleep());
  EXPECT_FALSE(is_rung());
  push();
  EXPECT_TRUE(is_rung());
  thread_->wake_up();
  EXPECT_FALSE(thread_->fall_asleep()) << "there is work";
  thread_->wake_up();
  thread_->progress();
  EXPECT_TRUE(thread_->fall_asleep());
  EXPECT_FALSE(is_rung());
  thread_->wake_up();
}

// The queue of two domains: the thread has a charge for each.
TEST_F(QueuedWork, LetsTheThreadSleepWhereItSleepsTwice) {
  EXPECT_TRUE(thread_->fall_asleep());
  EXPECT_TRUE(thread_->fall_asleep());
  push();
  EXPECT_TRUE(is_rung());
  for (int charge = 0; charge < 2; ++charge) {
    thread_->wake_up();
    thread_->progress();
    EXPECT_TRUE(thread_->fall_asleep());
  }
  EXPECT_FALSE(is_rung());
  for (int charge = 0; charge < 2; ++charge) thread_->wake_up();
}

TEST_F(QueuedWork, IsLeftToAProgramThatReads) {
  const unsigned polls = thread_->polls();
  EXPECT_EQ(read(), -FI_EAGAIN);
  EXPECT_NE(thread_->polls(), polls);
}

TEST_F(QueuedWork, OfAnObjectThatIsClosedIsNotDone) {
  push();
  queue().forget(object_);
  thread_->progress();
  EXPECT_EQ(read(), -FI_EAGAIN);
  EXPECT_EQ(done_, 0);
}

}  // namespace
}  // namespace weft::fabric
