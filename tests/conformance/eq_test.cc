// SPDX-License-Identifier: BSD-2-Clause
// What can a program read from an event queue, and how can it wait for it? (fi_eq(3))
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "os/thread_state_support.h"
#include "support/channel.h"
#include "support/domain.h"
#include "support/native_wait.h"

namespace weft::conformance {
namespace {

int patience_ms() { return static_cast<int>(patience().count()); }

Fid<fid_eq> open_queue(const Domain& domain, fi_wait_obj object, std::uint64_t flags = FI_WRITE) {
  fi_eq_attr attr{};
  attr.flags = flags;
  attr.wait_obj = object;
  return open_fid<fid_eq>(
      [&](fid_eq** out) { return fi_eq_open(domain.fabric(), &attr, out, nullptr); });
}

class EventQueue : public testing::Test {
 protected:
  EventQueue() : domain_(Options{}), eq_(open_queue(domain_, FI_WAIT_NONE)) {}

  ssize_t write(std::uint32_t event, std::uint64_t data) {
    fi_eq_entry entry{nullptr, nullptr, data};
    return fi_eq_write(eq_.get(), event, &entry, sizeof entry, 0);
  }
  // The data of the next event, or the negative answer.
  std::int64_t read(std::uint32_t expected_event, std::uint64_t flags = 0) {
    fi_eq_entry entry{};
    std::uint32_t event = 0;
    const ssize_t got = fi_eq_read(eq_.get(), &event, &entry, sizeof entry, flags);
    if (got < 0) return got;
    EXPECT_EQ(got, static_cast<ssize_t>(sizeof entry));
    EXPECT_EQ(event, expected_event);
    return static_cast<std::int64_t>(entry.data);
  }

  Domain domain_;
  Fid<fid_eq> eq_;
};

TEST_F(EventQueue, GivesEventsInTheirOrder) {
  EXPECT_EQ(read(0), -FI_EAGAIN);
  for (std::uint64_t i = 1; i <= 100; ++i) {
    EXPECT_EQ(write(FI_NOTIFY, i), static_cast<ssize_t>(sizeof(fi_eq_entry)));
  }
  for (std::int64_t i = 1; i <= 100; ++i) EXPECT_EQ(read(FI_NOTIFY), i);
  EXPECT_EQ(read(0), -FI_EAGAIN);
}

TEST_F(EventQueue, PeekingLeavesTheEvent) {
  write(FI_SHUTDOWN, 7);
  EXPECT_EQ(read(FI_SHUTDOWN, FI_PEEK), 7);
  EXPECT_EQ(read(FI_SHUTDOWN), 7);
  EXPECT_EQ(read(0), -FI_EAGAIN);
}

TEST_F(EventQueue, AnEventThatDoesNotFitStays) {
  write(FI_NOTIFY, 7);
  std::uint32_t event = 0;
  std::array<char, 4> little{};
  EXPECT_EQ(fi_eq_read(eq_.get(), &event, little.data(), little.size(), 0), -FI_ETOOSMALL);
  EXPECT_EQ(read(FI_NOTIFY), 7);
}

TEST_F(EventQueue, TakesEventsOnlyWhenOpenedForThem) {
  eq_ = open_queue(domain_, FI_WAIT_NONE, 0);
  EXPECT_LT(write(FI_NOTIFY, 1), 0);
  EXPECT_EQ(read(0), -FI_EAGAIN);
}

TEST_F(EventQueue, RefusesFlagsAndPointersThatMeanNothing) {
  fi_eq_entry entry{};
  std::uint32_t event = 0;
  fi_eq_err_entry error{};
  EXPECT_LT(fi_eq_read(eq_.get(), nullptr, &entry, sizeof entry, 0), 0);
  EXPECT_LT(fi_eq_read(eq_.get(), &event, nullptr, sizeof entry, 0), 0);
  EXPECT_LT(fi_eq_read(eq_.get(), &event, &entry, sizeof entry, FI_MORE), 0);
  EXPECT_LT(fi_eq_write(eq_.get(), FI_NOTIFY, nullptr, 8, 0), 0);
  EXPECT_LT(fi_eq_write(eq_.get(), FI_NOTIFY, &entry, sizeof entry, FI_MORE), 0);
  EXPECT_EQ(fi_eq_readerr(eq_.get(), &error, 0), -FI_EAGAIN);
  EXPECT_LT(fi_eq_readerr(eq_.get(), nullptr, 0), 0);
  EXPECT_NE(fi_eq_strerror(eq_.get(), FI_EINVAL, nullptr, nullptr, 0), nullptr);
}

TEST_F(EventQueue, WithoutAWaitObjectNoThreadWaits) {
  fi_eq_entry entry{};
  std::uint32_t event = 0;
  int fd = -1;
  EXPECT_EQ(fi_eq_sread(eq_.get(), &event, &entry, sizeof entry, 10, 0), -FI_EINVAL);
  EXPECT_LT(fi_control(&eq_->fid, FI_GETWAIT, &fd), 0);
}

class EqWait : public testing::TestWithParam<fi_wait_obj> {
 protected:
  EqWait() : domain_(Options{}), eq_(open_queue(domain_, GetParam())) {}

  ssize_t sread(int timeout_ms) {
    fi_eq_entry entry{};
    std::uint32_t event = 0;
    return fi_eq_sread(eq_.get(), &event, &entry, sizeof entry, timeout_ms, 0);
  }
  void write() {
    fi_eq_entry entry{};
    EXPECT_GT(fi_eq_write(eq_.get(), FI_NOTIFY, &entry, sizeof entry, 0), 0);
  }

  Domain domain_;
  Fid<fid_eq> eq_;
};

TEST_P(EqWait, EmptyQueueTimesOut) {
  EXPECT_EQ(sread(20), -FI_EAGAIN);
  EXPECT_EQ(sread(0), -FI_EAGAIN);
}

TEST_P(EqWait, AQueuedEventIsReadAtOnce) {
  write();
  EXPECT_GT(sread(-1), 0);
}

TEST_P(EqWait, SleeperIsWokenByAnEvent) {
  for (int round = 0; round < 3; ++round) {
    std::thread writer = os::once_asleep([&] { write(); });
    EXPECT_GT(sread(patience_ms()), 0);
    writer.join();
  }
}

TEST_P(EqWait, KindOfTheWaitObjectCanBeAskedFor) {
  fi_wait_obj object = FI_WAIT_NONE;
  EXPECT_EQ(fi_control(&eq_->fid, FI_GETWAITOBJ, &object), 0);
  EXPECT_EQ(object, GetParam());
}

std::string object_name(const testing::TestParamInfo<fi_wait_obj>& one) {
  return to_string(one.param);
}

INSTANTIATE_TEST_SUITE_P(Events, EqWait,
                         testing::Values(FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_POLLFD,
                                         FI_WAIT_MUTEX_COND, FI_WAIT_YIELD),
                         object_name);

class EqWaitNative : public EqWait {};

TEST_P(EqWaitNative, BlockingEndsWithAnEvent) {
  for (int round = 0; round < 20 && !HasFailure(); ++round) {
    std::thread writer([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(round * 50));
      write();
    });
    fi_eq_entry entry{};
    std::uint32_t event = 0;
    ssize_t got = 0;
    while ((got = fi_eq_read(eq_.get(), &event, &entry, sizeof entry, 0)) == -FI_EAGAIN) {
      const int blocked = block_on(domain_.fabric(), &eq_->fid, GetParam(), patience_ms());
      ASSERT_TRUE(blocked == 0 || blocked == -FI_EAGAIN) << blocked;
    }
    EXPECT_GT(got, 0);
    writer.join();
  }
}

INSTANTIATE_TEST_SUITE_P(Events, EqWaitNative, testing::ValuesIn(kNativeObjects), object_name);

}  // namespace
}  // namespace weft::conformance
