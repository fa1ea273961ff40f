// SPDX-License-Identifier: BSD-2-Clause
// Can a program sleep on a completion queue and be woken for every reason? (fi_cq(3), fi_poll(3))
#include <gtest/gtest.h>
#include <poll.h>

#include <thread>

#include "support/world.h"

namespace weft::conformance {
namespace {

constexpr std::uint32_t kNap = 50000;  // us: long enough that the waiter is really asleep.

int patience_ms() { return static_cast<int>(patience().count()); }

Options waiting(fi_wait_obj object) {
  Options options;
  options.wait = object;
  return options;
}

class CqWait : public testing::TestWithParam<fi_wait_obj> {
 protected:
  CqWait() : world_(Placement::kTwoProcesses, waiting(GetParam())) {}

  fid_cq* cq() { return world_.endpoint().cq(); }
  Token receive() { return world_.initiator().post({.kind = Kind::kRecv, .length = 8}); }

  // The peer sends after a nap, while this side does something else.
  void start_send(std::uint32_t delay_us) {
    Request request;
    request.what = Request::What::kPost;
    request.operation = {.kind = Kind::kSend,
                         .length = 8,
                         .seed = 5,
                         .peer = world_.to_initiator(),
                         .delay_us = delay_us};
    world_.remote().start(request);
  }
  void finish_send() { world_.target().wait_success(world_.remote().finish().value); }
  void expect_received(Token token, const fi_cq_tagged_entry& entry) {
    EXPECT_EQ(entry.op_context, world_.initiator().context_of(token));
    world_.initiator().expect_data(token, 5, 8);
  }

  World world_;
};

TEST_P(CqWait, EmptyQueueTimesOut) {
  ASSERT_TRUE(world_.ok());
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_sread(cq(), &entry, 1, nullptr, 20), -FI_EAGAIN);
  EXPECT_EQ(fi_cq_sread(cq(), &entry, 1, nullptr, 0), -FI_EAGAIN);
}

TEST_P(CqWait, SleeperIsWokenByAPeersMessage) {
  ASSERT_TRUE(world_.ok());
  for (int round = 0; round < 3; ++round) {
    const Token token = receive();
    start_send(kNap);
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(fi_cq_sread(cq(), &entry, 1, nullptr, patience_ms()), 1);
    expect_received(token, entry);
    finish_send();
  }
}

TEST_P(CqWait, ManySleepsLoseNoWakeUp) {
  ASSERT_TRUE(world_.ok());
  for (std::uint32_t round = 0; round < 200 && !HasFailure(); ++round) {
    const Token token = receive();
    start_send(round % 50);  // Around the moment in which the reader goes to sleep.
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(fi_cq_sread(cq(), &entry, 1, nullptr, patience_ms()), 1) << "round " << round;
    expect_received(token, entry);
    finish_send();
  }
}

TEST_P(CqWait, SleeperIsWokenByItsOwnOperation) {
  ASSERT_TRUE(world_.ok());
  const Token received = world_.target().post({.kind = Kind::kRecv, .length = 300000});
  const Token sent = world_.initiator().post(
      {.kind = Kind::kSend, .length = 300000, .seed = 2, .peer = world_.to_target()});
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_sread(cq(), &entry, 1, nullptr, patience_ms()), 1);
  EXPECT_EQ(entry.op_context, world_.initiator().context_of(sent));
  world_.target().wait_success(received);
  world_.target().expect_data(received, 2, 300000);
}

TEST_P(CqWait, SleeperIsWokenByAnError) {
  ASSERT_TRUE(world_.ok());
  receive();
  Request request;
  request.what = Request::What::kPost;
  request.operation = {.kind = Kind::kSend,
                       .length = 500,
                       .seed = 5,
                       .peer = world_.to_initiator(),
                       .delay_us = kNap};
  world_.remote().start(request);
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_sread(cq(), &entry, 1, nullptr, patience_ms()), -FI_EAVAIL);
  fi_cq_err_entry error{};
  EXPECT_EQ(fi_cq_readerr(cq(), &error, 0), 1);
  EXPECT_EQ(error.err, FI_ETRUNC);
  finish_send();
}

TEST_P(CqWait, SignalEndsAnEndlessWait) {
  ASSERT_TRUE(world_.ok());
  ssize_t result = 0;
  std::thread sleeper([&] {
    fi_cq_tagged_entry entry{};
    result = fi_cq_sread(cq(), &entry, 1, nullptr, -1);
  });
  std::this_thread::sleep_for(std::chrono::microseconds(kNap));
  EXPECT_EQ(fi_cq_signal(cq()), 0);
  sleeper.join();
  EXPECT_EQ(result, -FI_EAGAIN);
}

INSTANTIATE_TEST_SUITE_P(Completion, CqWait, testing::Values(FI_WAIT_UNSPEC, FI_WAIT_FD),
                         [](const testing::TestParamInfo<fi_wait_obj>& one) {
                           return one.param == FI_WAIT_FD ? "Fd" : "Unspec";
                         });

class CqWaitFd : public CqWait {
 protected:
  int descriptor() {
    int fd = -1;
    EXPECT_EQ(fi_control(&cq()->fid, FI_GETWAIT, &fd), 0);
    return fd;
  }
  int try_wait() {
    fid* waited = &cq()->fid;
    return fi_trywait(world_.endpoint().domain()->fabric(), &waited, 1);
  }
  // The loop of fi_poll(3): sleep only when fi_trywait allows it.
  ssize_t sleep_and_read(fi_cq_tagged_entry* entry) {
    pollfd waiting_for{descriptor(), POLLIN, 0};
    for (;;) {
      const ssize_t got = fi_cq_read(cq(), entry, 1);
      if (got != -FI_EAGAIN) return got;
      const int may_sleep = try_wait();
      if (may_sleep == -FI_EAGAIN) continue;
      if (may_sleep != 0) return may_sleep;
      if (::poll(&waiting_for, 1, patience_ms()) <= 0) return -FI_ETIMEDOUT;
    }
  }
};

TEST_P(CqWaitFd, PollingTheDescriptorLosesNoWakeUp) {
  ASSERT_TRUE(world_.ok());
  for (std::uint32_t round = 0; round < 200 && !HasFailure(); ++round) {
    const Token token = receive();
    start_send(round % 20 == 0 ? kNap / 10 : round % 50);
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(sleep_and_read(&entry), 1) << "round " << round;
    expect_received(token, entry);
    finish_send();
  }
}

TEST_P(CqWaitFd, WaitingIsRefusedWhileSomethingIsThere) {
  ASSERT_TRUE(world_.ok());
  const Token token = receive();
  start_send(0);
  // Only try_wait looks at the queue here, so it has to make the progress itself.
  const auto deadline = std::chrono::steady_clock::now() + patience();
  int rc = 0;
  while ((rc = try_wait()) == 0 && std::chrono::steady_clock::now() < deadline) {
  }
  EXPECT_EQ(rc, -FI_EAGAIN);
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_read(cq(), &entry, 1), 1);
  expect_received(token, entry);
  finish_send();
}

TEST_P(CqWaitFd, SignalMakesTheDescriptorReady) {
  ASSERT_TRUE(world_.ok());
  EXPECT_EQ(try_wait(), 0);
  EXPECT_EQ(fi_cq_signal(cq()), 0);
  pollfd waiting_for{descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&waiting_for, 1, patience_ms()), 1);
}

INSTANTIATE_TEST_SUITE_P(Completion, CqWaitFd, testing::Values(FI_WAIT_FD),
                         [](const testing::TestParamInfo<fi_wait_obj>&) { return "Fd"; });

TEST(CqWaitNone, BlockingReadIsRefused) {
  World world(Placement::kSelf, waiting(FI_WAIT_NONE));
  ASSERT_TRUE(world.ok());
  fi_cq_tagged_entry entry{};
  const ssize_t rc = fi_cq_sread(world.endpoint().cq(), &entry, 1, nullptr, 20);
  EXPECT_TRUE(rc == -FI_EINVAL || rc == -FI_ENOSYS || rc == -FI_EOPNOTSUPP) << rc;
}

TEST(CqWaitNone, HasNoWaitObject) {
  World world(Placement::kSelf, waiting(FI_WAIT_NONE));
  ASSERT_TRUE(world.ok());
  int fd = -1;
  EXPECT_LT(fi_control(&world.endpoint().cq()->fid, FI_GETWAIT, &fd), 0);
}

}  // namespace
}  // namespace weft::conformance
