// SPDX-License-Identifier: BSD-2-Clause
// May a thread be cancelled that is inside a call of the provider? pthreads(7), pthread_cancel(3)
//
// Deferred cancellation ends a thread that sleeps, and leaves everything as if its call had
// returned. No other call is a cancellation point: it would leave the provider's locks held.
#include <gtest/gtest.h>
#include <pthread.h>
#include <rdma/fi_eq.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <string>

#include "os/thread_state_support.h"
#include "support/native_wait.h"
#include "support/place.h"
#include "support/world.h"

namespace weft::conformance {
namespace {

// A thread that runs `body`, which may be cancelled.
class Worker {
 public:
  explicit Worker(std::function<void()> body) : body_(std::move(body)) {
    EXPECT_EQ(pthread_create(&thread_, nullptr, run, this), 0);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    if (!joined_) join();
  }

  // Returns once the thread sleeps, or never sleeps.
  void wait_until_asleep() const { os::wait_until_asleep(id_); }
  // True when it was cancelled before it came to its end.
  bool cancel() {
    EXPECT_EQ(pthread_cancel(thread_), 0);
    return join();
  }
  bool join() {
    void* result = nullptr;
    EXPECT_EQ(pthread_join(thread_, &result), 0);
    joined_ = true;
    return result == PTHREAD_CANCELED;
  }

 private:
  static void* run(void* self) {
    auto& worker = *static_cast<Worker*>(self);
    worker.id_ = gettid();
    worker.body_();
    return nullptr;
  }

  std::function<void()> body_;
  std::atomic<pid_t> id_{0};
  pthread_t thread_{};
  bool joined_ = false;
};

class CancellationOfWait : public testing::TestWithParam<fi_wait_obj> {
 protected:
  CancellationOfWait() : world_(Placement::kSelf, waiting(GetParam())) {
    if (world_.ok()) world_.exchange();  // from here on no post is put off
  }
  ssize_t sleep_for_one(int timeout_ms) {
    fi_cq_tagged_entry entry{};
    return fi_cq_sread(world_.endpoint().cq(), &entry, 1, nullptr, timeout_ms);
  }
  // Makes an entry in the queue.
  void bring_news() {
    world_.initiator().post({.kind = Kind::kRecv, .length = 8});
    world_.initiator().post({.kind = Kind::kInject, .length = 8, .peer = world_.to_target()});
  }

  World world_;
};

TEST_P(CancellationOfWait, EndsASleeperAndTheQueueServesTheNext) {
  ASSERT_TRUE(world_.ok());
  for (int round = 0; round < 3; ++round) {
    Worker cancelled([&] { sleep_for_one(-1); });
    cancelled.wait_until_asleep();
    EXPECT_TRUE(cancelled.cancel());
    EXPECT_EQ(sleep_for_one(0), -FI_EAGAIN);
    ssize_t got = 0;
    Worker next([&] { got = sleep_for_one(-1); });
    next.wait_until_asleep();
    bring_news();
    EXPECT_FALSE(next.join());
    EXPECT_EQ(got, 1);
  }
}

TEST_P(CancellationOfWait, LeavesTheOtherSleepersTheirNews) {
  ASSERT_TRUE(world_.ok());
  for (const bool first : {true, false}) {
    std::array<ssize_t, 2> got{};
    Worker one([&] { got[0] = sleep_for_one(-1); });
    one.wait_until_asleep();
    Worker two([&] { got[1] = sleep_for_one(-1); });
    two.wait_until_asleep();
    EXPECT_TRUE((first ? one : two).cancel());
    bring_news();
    EXPECT_FALSE((first ? two : one).join());
    EXPECT_EQ(got[first ? 1 : 0], 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Cancellation, CancellationOfWait,
                         testing::Values(FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_MUTEX_COND,
                                         FI_WAIT_YIELD),
                         [](const auto& one) { return std::string(to_string(one.param)); });

TEST(Cancellation, EndsWaitsForCountersEventsAndSets) {
  Domain domain((Options()));
  ASSERT_TRUE(domain.ok());
  for (const fi_wait_obj object : {FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_YIELD}) {
    SCOPED_TRACE(object);
    fi_cntr_attr counted{};
    counted.wait_obj = object;
    const auto counter = open_fid<fid_cntr>(
        [&](fid_cntr** out) { return fi_cntr_open(domain.get(), &counted, out, nullptr); });
    fi_eq_attr queued{};
    queued.flags = FI_WRITE;
    queued.wait_obj = object;
    const auto eq = open_fid<fid_eq>(
        [&](fid_eq** out) { return fi_eq_open(domain.fabric(), &queued, out, nullptr); });
    fi_wait_attr together{object, 0};
    const auto set = open_fid<fid_wait>(
        [&](fid_wait** out) { return fi_wait_open(domain.fabric(), &together, out); });
    ASSERT_TRUE(counter && eq && set);
    std::uint32_t event = 0;
    std::array<std::byte, 64> entry{};
    for (const std::function<void()>& sleep : std::initializer_list<std::function<void()>>{
             [&] { fi_cntr_wait(counter.get(), 1, -1); },
             [&] { fi_eq_sread(eq.get(), &event, entry.data(), entry.size(), -1, 0); },
             [&] { fi_wait(set.get(), -1); }}) {
      Worker sleeper(sleep);
      sleeper.wait_until_asleep();
      EXPECT_TRUE(sleeper.cancel());
    }
    EXPECT_EQ(fi_cntr_add(counter.get(), 1), 0);
    EXPECT_EQ(fi_cntr_wait(counter.get(), 1, -1), 0);
    EXPECT_EQ(fi_eq_write(eq.get(), FI_NOTIFY, "news", 4, 0), 4);
    EXPECT_EQ(fi_eq_sread(eq.get(), &event, entry.data(), entry.size(), -1, 0), 4);
    EXPECT_EQ(fi_wait(set.get(), 0), -FI_ETIMEDOUT);
  }
}

// Runs `calls` in a thread that a request to cancel it waits for: the first cancellation point is
// its end.
void expect_no_cancellation_point(const std::function<void()>& calls) {
  bool done = false;
  Worker worker([&] {
    int before = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    pthread_cancel(pthread_self());
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    calls();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    done = true;
  });
  EXPECT_FALSE(worker.join());
  EXPECT_TRUE(done);
}

void exchange(Pump& pump, Endpoint& from, Endpoint& to, fi_addr_t peer, std::size_t length) {
  std::vector<std::byte> sent(length);
  std::vector<std::byte> received(length);
  fi_context2 context[2]{};
  const auto accepted = [&](const std::function<ssize_t()>& post) {
    return pump.until([&] {
      const ssize_t status = post();
      EXPECT_TRUE(status == 0 || status == -FI_EAGAIN) << status;
      return status != -FI_EAGAIN;
    });
  };
  EXPECT_TRUE(accepted([&] {
    return fi_recv(to.ep(), received.data(), length, nullptr, FI_ADDR_UNSPEC, &context[0]);
  }));
  EXPECT_TRUE(accepted(
      [&] { return fi_send(from.ep(), sent.data(), length, nullptr, peer, &context[1]); }));
  EXPECT_TRUE(pump.until([&] { return to.take(&context[0]).has_value(); }));
  EXPECT_TRUE(pump.until([&] { return from.take(&context[1]).has_value(); }));
}

void register_and_close(Domain& domain) {
  std::vector<std::byte> memory(1 << 16);
  const auto region = open_fid<fid_mr>([&](fid_mr** out) {
    return fi_mr_reg(domain.get(), memory.data(), memory.size(), FI_REMOTE_WRITE, 0,
                     Endpoint::next_key(), 0, out, nullptr);
  });
  EXPECT_NE(region, nullptr);
}

TEST(Cancellation, NoCallButAWaitIsACancellationPoint) {
  for (const std::size_t length : {std::size_t{8}, std::size_t{300000}}) {
    auto domain = std::make_shared<Domain>(Options());
    ASSERT_TRUE(domain->ok());
    expect_no_cancellation_point([&] {
      Options options;
      options.wait = FI_WAIT_FD;
      Endpoint from(domain, options);
      Endpoint to(domain, options);
      ASSERT_TRUE(from.ok() && to.ok());
      Pump pump;
      pump.add(&from);
      pump.add(&to);
      const fi_addr_t peer = from.insert(to.name());
      for (int i = 0; i < 20; ++i) exchange(pump, from, to, peer, length);
      fid* waited = &from.cq()->fid;
      EXPECT_EQ(fi_trywait(domain->fabric(), &waited, 1), 0);
      register_and_close(*domain);
    });
  }
}

TEST(Cancellation, ConnectingIsNoCancellationPoint) {
  Place place(FI_WAIT_FD, FI_THREAD_SAFE);
  ASSERT_TRUE(place.ok());
  expect_no_cancellation_point([&] {
    Pair pair(place);
    EXPECT_EQ(fi_shutdown(pair.active.get(), 0), 0);
  });
}

}  // namespace
}  // namespace weft::conformance
