// SPDX-License-Identifier: BSD-2-Clause
// Does a process that waits leave the processor to others?
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "os/thread_state_support.h"
#include "support/native_wait.h"
#include "support/world.h"

namespace weft::conformance {
namespace {

// Calls `wait`, which `end` ends from another thread once all other threads of the process sleep. A
// thread that spins, or that naps for less than it runs, is not found asleep 20 times in a row, a
// millisecond apart.
void expect_sleep(const std::function<void()>& wait, const std::function<void()>& end,
                  const char* what) {
  constexpr int kInARow = 20;
  bool all_slept = false;
  std::thread observer([&] {
    all_slept =
        os::holds_in_a_row(os::all_others_sleep, kInARow, static_cast<int>(patience().count()));
    end();
  });
  wait();
  observer.join();
  EXPECT_TRUE(all_slept) << what << " does not let its process sleep";
}

long context_switches() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return used.ru_nvcsw + used.ru_nivcsw;
}

// Keeps the processor of the calling thread busy, and the thread there, while it lives.
class Competitor {
 public:
  Competitor() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);  // the thread below inherits it
    thread_ = std::thread([this] {
      while (!over_.load(std::memory_order_relaxed)) {
      }
    });
  }
  ~Competitor() {
    over_ = true;
    thread_.join();
    sched_setaffinity(0, sizeof before_, &before_);
  }

 private:
  cpu_set_t before_{};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

// FI_WAIT_YIELD is not here: it asks to spin.
class WaitingCost : public testing::TestWithParam<std::tuple<fi_wait_obj, fi_progress>> {
 protected:
  static Options options() {
    Options options;
    options.wait = options.counter_wait = std::get<0>(GetParam());
    options.data_progress = std::get<1>(GetParam());
    options.counters = FI_RECV;
    return options;
  }
};

TEST_P(WaitingCost, NoCallThatWaitsSpins) {
  World world(Placement::kOneProcess, options());
  ASSERT_TRUE(world.ok());
  world.exchange(100000);
  world.initiator().post({.kind = Kind::kRecv, .length = 8});
  fi_cq_tagged_entry entry{};
  fid_cq* const cq = world.endpoint().cq();
  fid_cntr* const counter = world.endpoint().counter(FI_RECV);
  for (const int limit_ms : {-1, static_cast<int>(2 * patience().count())}) {
    expect_sleep([&] { EXPECT_EQ(fi_cq_sread(cq, &entry, 1, nullptr, limit_ms), -FI_EAGAIN); },
                 [&] { fi_cq_signal(cq); }, "fi_cq_sread");
    expect_sleep([&] { EXPECT_EQ(fi_cntr_wait(counter, 100, limit_ms), 0); },
                 [&] { fi_cntr_set(counter, 100); }, "fi_cntr_wait");
    fi_cntr_set(counter, 0);
  }
}

// More processes than processors: a peer that could answer must not wait until the time slice of a
// process is over that polls for its answer. (A yield counts as an involuntary switch.)
TEST(WaitingCostOfPolls, APollThatFindsNothingForLongYieldsTheProcessor) {
  constexpr int kPolls = 65536;  // within a host 5 ms, one or two time slices
  World world(Placement::kTwoProcesses, Options{});
  ASSERT_TRUE(world.ok());
  world.exchange();
  fi_cq_tagged_entry entry{};
  Competitor competitor;
  const long before = context_switches();
  for (int i = 0; i < kPolls; ++i) {
    ASSERT_EQ(fi_cq_read(world.endpoint().cq(), &entry, 1), -FI_EAGAIN);
  }
  EXPECT_GE(context_switches() - before, 30);
}

// The peer takes nothing: the ring is full, and no event tells when there is room again; or the
// peer was offered a message that is too long to be buffered.
TEST_P(WaitingCost, WaitingForAPeerThatDoesNotReceiveCostsNothing) {
  Options quiet = options();
  quiet.data_progress = FI_PROGRESS_MANUAL;
  quiet.left_alone = true;
  World world(Placement::kOneProcess, quiet);
  ASSERT_TRUE(world.ok());
  const std::size_t length = only_links("udp") ? 200000 : 20000;
  for (int i = 0; i < 300; ++i) {
    world.initiator().post({.kind = Kind::kSend, .length = length, .peer = world.to_target()});
  }
  fi_cq_tagged_entry entry{};
  fid_cq* const cq = world.endpoint().cq();
  expect_sleep([&] { EXPECT_EQ(fi_cq_sread(cq, &entry, 1, nullptr, -1), -FI_EAGAIN); },
               [&] { fi_cq_signal(cq); }, "fi_cq_sread");
}

INSTANTIATE_TEST_SUITE_P(
    Idle, WaitingCost,
    testing::Combine(testing::Values(FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_POLLFD,
                                     FI_WAIT_MUTEX_COND),
                     testing::Values(FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO)),
    [](const testing::TestParamInfo<std::tuple<fi_wait_obj, fi_progress>>& one) {
      return std::string(to_string(std::get<0>(one.param))) +
             (std::get<1>(one.param) == FI_PROGRESS_AUTO ? "_Auto" : "_Manual");
    });

TEST(WaitingCostOfSets, AWaitSetAndItsMembersSleep) {
  const Domain domain{Options{}};
  for (const fi_wait_obj object : {FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_MUTEX_COND}) {
    fi_wait_attr wanted{object, 0};
    Fid<fid_wait> set = open_fid<fid_wait>(
        [&](fid_wait** out) { return fi_wait_open(domain.fabric(), &wanted, out); });
    fi_eq_attr attr{};
    attr.flags = FI_WRITE;
    attr.wait_obj = FI_WAIT_SET;
    attr.wait_set = set.get();
    Fid<fid_eq> eq = open_fid<fid_eq>(
        [&](fid_eq** out) { return fi_eq_open(domain.fabric(), &attr, out, nullptr); });
    const auto write = [&] {
      const fi_eq_entry entry{};
      EXPECT_GT(fi_eq_write(eq.get(), FI_NOTIFY, &entry, sizeof entry, 0), 0);
    };
    expect_sleep([&] { EXPECT_EQ(fi_wait(set.get(), -1), 0); }, write, "fi_wait");
  }
}

// The background thread looks now and then whether the program still polls, and sleeps otherwise.
TEST(WaitingCostOfProgress, AnIdleProcessWithAutomaticProgressCostsNothing) {
  Options options;
  options.data_progress = FI_PROGRESS_AUTO;
  options.left_alone = true;
  World world(Placement::kOneProcess, options);
  ASSERT_TRUE(world.ok());
  world.initiator().post({.kind = Kind::kSend, .length = 100000, .peer = world.to_target()});
  expect_sleep([] {}, [] {}, "the background thread");
}

}  // namespace
}  // namespace weft::conformance
