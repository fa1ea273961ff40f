// SPDX-License-Identifier: BSD-2-Clause
// Does the background thread drive the engines that are not polled, and no others?
#include "device/progress_thread.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "os/thread_count_support.h"

namespace weft::device {
namespace {

using std::chrono::milliseconds;

bool comes_true(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

// An engine with a bell; what arrives are numbers.
class Served : public Engine {
 public:
  Served() : waker_(os::Event::create().value()) {}

  void post() {
    arrived_.fetch_add(1);
    if (asleep_.load() > 0) waker_.set();
  }
  // The program drives it.
  void poll() { polls_.fetch_add(1); }
  // The program finds an arrival that has waited for it.
  void poll_late() {
    late_.fetch_add(1);
    poll();
  }
  // The program finds arrivals, the first of which has waited for it.
  void poll_often(int arrivals) {
    taken_.fetch_add(arrivals);
    poll_late();
  }
  // Wakes a sleeper in vain.
  void ring() { waker_.set(); }
  int taken() const { return taken_.load(); }
  int asleep() const { return asleep_.load(); }
  int driven() const { return driven_.load(); }
  // It has work that is never announced.
  void set_restless(bool restless) { restless_ = restless; }

  void progress() override {
    driven_.fetch_add(1);
    polls_.fetch_add(1);
    waker_.clear();
    taken_.fetch_add(arrived_.exchange(0));
  }
  bool fall_asleep() override {
    asleep_.fetch_add(1);
    return arrived_.load() == 0 && !restless_;
  }
  void wake_up() override { asleep_.fetch_sub(1); }
  int wake_fd() const override { return waker_.fd(); }
  unsigned polls() override { return polls_.load(); }
  Arrivals arrivals() override {
    const auto taken = static_cast<unsigned>(taken_.load());
    return {taken, late_.load(), taken};
  }

 private:
  os::Event waker_;
  std::atomic<int> arrived_{0};
  std::atomic<int> taken_{0};
  std::atomic<int> asleep_{0};
  std::atomic<int> driven_{0};
  std::atomic<unsigned> polls_{0};
  std::atomic<unsigned> late_{0};
  std::atomic<bool> restless_{false};
};

// An engine that finds something whenever it is driven, and wakes its sleepers at once.
class Endless : public Engine {
 public:
  Endless() : waker_(os::Event::create().value()) { waker_.set(); }
  int driven() const { return driven_.load(); }

  void progress() override { driven_.fetch_add(1); }
  bool fall_asleep() override { return true; }
  void wake_up() override {}
  int wake_fd() const override { return waker_.fd(); }
  Arrivals arrivals() override { return {static_cast<unsigned>(driven_.load()), 0, 0}; }

 private:
  os::Event waker_;
  std::atomic<int> driven_{0};
};

class ProgressThreadTest : public testing::Test {
 protected:
  ProgressThreadTest() : thread_(ProgressThread::get().value()) { thread_->attach(engine_); }
  void SetUp() override { ASSERT_TRUE(thread_->start().ok()); }
  ~ProgressThreadTest() override {
    thread_->detach(engine_);
    EXPECT_EQ(engine_.asleep(), 0) << "it was left asleep";
  }
  bool falls_asleep() {
    return comes_true([&] { return engine_.asleep() == 1; });
  }

  Served engine_;
  std::shared_ptr<ProgressThread> thread_;
};

TEST_F(ProgressThreadTest, ServesWhatArrives) {
  for (int i = 1; i <= 100; ++i) {
    engine_.post();
    ASSERT_TRUE(comes_true([&] { return engine_.taken() == i; })) << i;
  }
}

TEST_F(ProgressThreadTest, ServesOthersBesideAnEngineThatFindsSomethingAlways) {
  Endless endless;
  thread_->attach(endless);
  ASSERT_TRUE(comes_true([&] { return endless.driven() > 1000; }));
  for (int i = 1; i <= 10; ++i) {
    engine_.post();
    ASSERT_TRUE(comes_true([&] { return engine_.taken() == i; })) << i;
  }
  thread_->detach(endless);
}

TEST_F(ProgressThreadTest, ServesAnEngineThatHasSlept) {
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(falls_asleep());
    engine_.post();
    ASSERT_TRUE(comes_true([&] { return engine_.taken() == i; }));
  }
}

TEST_F(ProgressThreadTest, LeavesAQuietEngineAlone) {
  ASSERT_TRUE(falls_asleep());
  const int before = engine_.driven();
  const auto begin = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(milliseconds(50));
  const int driven = engine_.driven() - before;
  const auto naps = (std::chrono::steady_clock::now() - begin) / milliseconds(500);
  EXPECT_LE(driven, 5 + naps);
}

TEST_F(ProgressThreadTest, KeepsAwayWhileTheProgramPolls) {
  ASSERT_TRUE(falls_asleep());
  std::atomic<bool> stop{false};
  std::thread program([&] {
    while (!stop) engine_.poll();
  });
  const unsigned unpolled = engine_.polls();
  ASSERT_TRUE(comes_true([&] { return engine_.polls() != unpolled; }));
  engine_.post();  // wakes it, so that it sees which threads poll
  ASSERT_TRUE(comes_true([&] { return engine_.asleep() == 0; }));
  // A program that is kept from polling looks like one that has stopped: then it may step in.
  const auto keeps_away = [&] {
    const int before = engine_.driven();
    std::this_thread::sleep_for(milliseconds(50));
    return engine_.driven() == before && engine_.asleep() == 0;
  };
  EXPECT_TRUE(comes_true(keeps_away)) << "it takes work from a program that polls";
  stop = true;
  program.join();
  EXPECT_TRUE(comes_true([&] { return engine_.taken() == 1; })) << "the polling has stopped";
}

TEST_F(ProgressThreadTest, ServesAPolledEngineAfterLateArrivalsUntilItFindsNothing) {
  std::atomic<bool> stop{false};
  std::thread program([&] {
    while (!stop) engine_.poll();
  });
  engine_.poll_late();
  for (int i = 1; i <= 100; ++i) {
    ASSERT_TRUE(falls_asleep());
    engine_.post();
    ASSERT_TRUE(comes_true([&] { return engine_.taken() == i; })) << i;
  }
  // Each time that it is woken it finds nothing, as the program was faster.
  EXPECT_TRUE(comes_true([&] {
    if (engine_.asleep() != 0) engine_.ring();
    const int before = engine_.driven();
    std::this_thread::sleep_for(milliseconds(20));
    return engine_.driven() == before && engine_.asleep() == 0;
  }));
  stop = true;
  program.join();
}

TEST_F(ProgressThreadTest, KeepsAwayFromAProgramThatWasPreemptedOnce) {
  ASSERT_TRUE(falls_asleep());
  std::atomic<bool> stop{false};
  std::atomic<bool> preempted{false};
  std::thread program([&] {
    while (!stop) preempted.exchange(false) ? engine_.poll_often(100) : engine_.poll();
  });
  const auto keeps_away = [&] {
    const int before = engine_.driven();
    preempted = true;
    std::this_thread::sleep_for(milliseconds(20));
    return engine_.driven() == before && engine_.asleep() == 0;
  };
  engine_.ring();  // so that it sees which threads poll
  EXPECT_TRUE(comes_true(keeps_away));
  stop = true;
  program.join();
}

TEST_F(ProgressThreadTest, PollsMoreAndMoreSeldomForUnsignalledEvents) {
  engine_.set_restless(true);
  engine_.post();
  ASSERT_TRUE(comes_true([&] { return engine_.taken() == 1; }));
  const int before = engine_.driven();
  const auto begin = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(milliseconds(100));
  const int driven = engine_.driven() - before;
  const auto naps = (std::chrono::steady_clock::now() - begin) / milliseconds(2);
  EXPECT_LT(driven, 200 + naps);
  engine_.set_restless(false);
  EXPECT_TRUE(falls_asleep());
}

TEST_F(ProgressThreadTest, AnEngineThatLeftIsNotTouched) {
  for (int i = 0; i < 200; ++i) {
    auto passing = std::make_unique<Served>();
    thread_->attach(*passing);
    passing->post();
    if (i % 2 == 0) std::this_thread::yield();
    thread_->detach(*passing);
    EXPECT_EQ(passing->asleep(), 0);
  }
  thread_->detach(engine_);
  const int before = engine_.driven();
  engine_.post();
  // When the thread has served another engine twice it has also looked at all others.
  Served other;
  thread_->attach(other);
  for (int i = 1; i <= 2; ++i) {
    other.post();
    EXPECT_TRUE(comes_true([&] { return other.taken() == i; }));
  }
  thread_->detach(other);
  EXPECT_EQ(engine_.driven(), before);
}

TEST_F(ProgressThreadTest, IsOneForTheProcess) {
  EXPECT_EQ(ProgressThread::get().value(), thread_);
}

TEST_F(ProgressThreadTest, AForkedChildLeavesWithoutItAndGetsItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer allows no threads in the child of a process with threads";
#endif
  // AddressSanitizer has locks of its own that a thread holds while it begins, and no child gets.
  engine_.post();
  ASSERT_TRUE(comes_true([&] { return engine_.taken() == 1; }));
  for (int round = 0; round < 20; ++round) {
    engine_.post();
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      thread_->detach(engine_);
      Served own;
      const auto another = ProgressThread::get().value();
      const bool started = another->start().ok();
      another->attach(own);
      own.post();
      const bool served = comes_true([&] { return own.taken() == 1; });
      another->detach(own);
      thread_.reset();
      _exit(started && served ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  EXPECT_TRUE(comes_true([&] { return engine_.taken() == 21; }));
}

TEST(ProgressThread, EndsWithItsLastUserAndStartsAnew) {
  for (int i = 0; i < 20; ++i) {
    Served engine;
    const auto thread = ProgressThread::get().value();
    ASSERT_TRUE(thread->start().ok());
    thread->attach(engine);
    engine.post();
    ASSERT_TRUE(comes_true([&] { return engine.taken() == 1; }));
    thread->detach(engine);
  }
}

TEST(ProgressThread, LeavesAllAloneBeforeItBegins) {
  const std::size_t before = os::count_threads();
  Served engine;
  const auto thread = ProgressThread::get().value();
  thread->attach(engine);
  engine.post();
  EXPECT_EQ(os::count_threads(), before);
  EXPECT_EQ(engine.driven(), 0);
  ASSERT_TRUE(thread->start().ok());
  EXPECT_TRUE(comes_true([&] { return engine.taken() == 1; }));
  thread->detach(engine);
}

TEST(ProgressThread, AnEngineMayLeaveBeforeItBegins) {
  Served engine;
  const auto thread = ProgressThread::get().value();
  thread->attach(engine);
  thread->detach(engine);
  EXPECT_EQ(engine.asleep(), 0);
}

// The thread that starts it may be inside an engine that it is to drive.
TEST(ProgressThread, BeginsOnceThoughManyStartIt) {
  // A sanitizer begins a thread of its own with the first one.
  std::thread([] {}).join();
  for (int round = 0; round < 20; ++round) {
    const std::size_t before = os::count_threads();
    std::mutex inside;
    struct Locked : Served {
      explicit Locked(std::mutex& mutex) : mutex(mutex) {}
      void progress() override {
        const std::lock_guard guard(mutex);
        Served::progress();
      }
      std::mutex& mutex;
    } engine(inside);
    const auto thread = ProgressThread::get().value();
    thread->attach(engine);
    engine.post();
    std::vector<std::thread> starters;
    for (int i = 0; i < 4; ++i) {
      starters.emplace_back([&] {
        const std::lock_guard guard(inside);
        EXPECT_TRUE(thread->start().ok());
      });
    }
    for (std::thread& each : starters) each.join();
    EXPECT_TRUE(comes_true([&] { return engine.taken() == 1; }));
    EXPECT_EQ(os::count_threads(), before + 1);
    thread->detach(engine);
  }
}

TEST(ProgressThread, AForkedChildOfAProcessInWhichItBeginsIsWhole) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer allows no threads in the child of a process with threads";
#endif
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP()
      << "AddressSanitizer has locks that a thread holds while it begins, and no child gets";
#endif
  for (int round = 0; round < 20; ++round) {
    Served engine;
    auto thread = ProgressThread::get().value();
    thread->attach(engine);
    std::thread starter([&] { EXPECT_TRUE(thread->start().ok()); });
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      thread->detach(engine);
      const bool own = ProgressThread::get().value() != thread;
      const bool started = ProgressThread::get().value()->start().ok();
      thread.reset();
      _exit(own && started ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    starter.join();
    engine.post();
    EXPECT_TRUE(comes_true([&] { return engine.taken() == 1; }));
    thread->detach(engine);
  }
}

}  // namespace
}  // namespace weft::device
