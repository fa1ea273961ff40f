// SPDX-License-Identifier: BSD-2-Clause
// Can a program sleep on a completion queue and be woken for every reason? (fi_cq(3), fi_poll(3))
#include <gtest/gtest.h>

#include <thread>

#include "os/thread_state_support.h"
#include "support/native_wait.h"
#include "support/world.h"

namespace weft::conformance {
namespace {

constexpr std::uint32_t kNap = 50000;  // us: long enough that the waiter is really asleep.

int patience_ms() { return static_cast<int>(patience().count()); }

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
  std::thread other = os::once_asleep([&] { EXPECT_EQ(fi_cq_signal(cq()), 0); });
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_sread(cq(), &entry, 1, nullptr, -1), -FI_EAGAIN);
  other.join();
}

TEST_P(CqWait, KindOfTheWaitObjectCanBeAskedFor) {
  ASSERT_TRUE(world_.ok());
  fi_wait_obj object = FI_WAIT_NONE;
  EXPECT_EQ(fi_control(&cq()->fid, FI_GETWAITOBJ, &object), 0);
  EXPECT_EQ(object, GetParam());
}

std::string object_name(const testing::TestParamInfo<fi_wait_obj>& one) {
  return to_string(one.param);
}

INSTANTIATE_TEST_SUITE_P(Completion, CqWait,
                         testing::Values(FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_POLLFD,
                                         FI_WAIT_MUTEX_COND, FI_WAIT_YIELD),
                         object_name);

// Programs that block on the wait object by themselves.
class CqWaitNative : public CqWait {
 protected:
  fid_fabric* fabric() { return world_.endpoint().domain()->fabric(); }
  int block(int timeout_ms) { return block_on(fabric(), &cq()->fid, GetParam(), timeout_ms); }
  int try_wait() {
    fid* waited = &cq()->fid;
    return fi_trywait(fabric(), &waited, 1);
  }
  // The loop of fi_poll(3): sleep only when fi_trywait allows it.
  ssize_t sleep_and_read(fi_cq_tagged_entry* entry) {
    for (;;) {
      const ssize_t got = fi_cq_read(cq(), entry, 1);
      if (got != -FI_EAGAIN) return got;
      const int blocked = block(patience_ms());
      if (blocked != 0 && blocked != -FI_EAGAIN) return blocked;
    }
  }
};

TEST_P(CqWaitNative, BlockingLosesNoWakeUp) {
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

TEST_P(CqWaitNative, WaitingIsRefusedWhileSomethingIsThere) {
  ASSERT_TRUE(world_.ok());
  const Token token = receive();
  start_send(0);
  // Only try_wait looks at the queue while nothing is there, so it has to make the progress itself.
  // It may refuse, too, because something has happened of which no entry has come yet.
  const auto deadline = std::chrono::steady_clock::now() + patience();
  fi_cq_tagged_entry entry{};
  ssize_t read = -FI_EAGAIN;
  while (read == -FI_EAGAIN && std::chrono::steady_clock::now() < deadline) {
    const int rc = try_wait();
    if (rc == 0) continue;
    ASSERT_EQ(rc, -FI_EAGAIN);
    read = fi_cq_read(cq(), &entry, 1);
  }
  ASSERT_EQ(read, 1);
  expect_received(token, entry);
  finish_send();
}

TEST_P(CqWaitNative, NothingHappensWithoutNews) {
  ASSERT_TRUE(world_.ok());
  // It may be woken in vain, but not for ever.
  int blocked = 0;
  for (int i = 0; i < 100 && blocked != -FI_ETIMEDOUT; ++i) blocked = block(50);
  EXPECT_EQ(blocked, -FI_ETIMEDOUT);
}

TEST_P(CqWaitNative, SignalEndsTheWait) {
  ASSERT_TRUE(world_.ok());
  std::thread other = os::once_asleep([&] { EXPECT_EQ(fi_cq_signal(cq()), 0); });
  int blocked = 0;
  while (blocked == 0) blocked = block(patience_ms());
  EXPECT_EQ(blocked, -FI_EAGAIN) << "fi_trywait tells of the signal";
  other.join();
}

INSTANTIATE_TEST_SUITE_P(Completion, CqWaitNative, testing::ValuesIn(kNativeObjects), object_name);

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

TEST(CqWaitNone, SignalIsRefused) {
  World world(Placement::kSelf, waiting(FI_WAIT_NONE));
  ASSERT_TRUE(world.ok());
  EXPECT_LT(fi_cq_signal(world.endpoint().cq()), 0) << "no thread can wait";
}

// The condition is a hint about when waking up pays; more than the queue holds can never come.
TEST(CqWaitThreshold, WaitsForAsManyEntries) {
  Options options = waiting(FI_WAIT_UNSPEC);
  options.threshold = true;
  World world(Placement::kSelf, options);
  ASSERT_TRUE(world.ok());
  world.exchange();  // from here on no post is put off
  for (int i = 0; i < 3; ++i) {
    world.initiator().post({.kind = Kind::kRecv, .length = 8});
    world.initiator().post({.kind = Kind::kInject, .length = 8, .peer = world.to_target()});
  }
  fi_cq_tagged_entry entries[8];
  const auto three = reinterpret_cast<void*>(std::uintptr_t{3});
  EXPECT_EQ(fi_cq_sread(world.endpoint().cq(), entries, 8, three, patience_ms()), 3);
  EXPECT_EQ(fi_cq_sread(world.endpoint().cq(), entries, 8, three, 20), -FI_EAGAIN);
}

}  // namespace
}  // namespace weft::conformance
