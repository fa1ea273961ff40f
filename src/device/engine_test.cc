// SPDX-License-Identifier: BSD-2-Clause
// Does a waiting thread wake up for every event, and otherwise at its deadline only?
#include "device/engine.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <functional>
#include <thread>

namespace weft::device {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kForever{-1};

// An endpoint whose arrivals are numbers that any thread posts; progress() takes them in.
class FakeEngine : public Engine {
 public:
  explicit FakeEngine(EngineGroup& group) : group_(group), waker_(os::Event::create().value()) {}

  // Something arrives, as if a peer had sent it.
  void post() {
    arrived_.fetch_add(1);
    if (asleep_.load() > 0) waker_.set();
  }
  // What progress() has taken in.
  int taken() const { return taken_.load(); }
  // How many fall_asleep() lack their wake_up().
  int asleep() const { return asleep_.load(); }
  int progressed() const { return progressed_.load(); }

  void progress() override {
    progressed_.fetch_add(1);
    waker_.clear();
    const int count = arrived_.exchange(0);
    if (count == 0) return;
    taken_.fetch_add(count);
    group_.notify();
  }
  bool fall_asleep() override {
    asleep_.fetch_add(1);
    return arrived_.load() == 0;
  }
  void wake_up() override { asleep_.fetch_sub(1); }
  int wake_fd() const override { return waker_.fd(); }

 private:
  EngineGroup& group_;
  os::Event waker_;
  std::atomic<int> arrived_{0};
  std::atomic<int> taken_{0};
  std::atomic<int> asleep_{0};
  std::atomic<int> progressed_{0};
};

class EngineGroupTest : public testing::Test {
 protected:
  EngineGroupTest() {
    EXPECT_TRUE(group_.open().ok());
    EXPECT_TRUE(group_.attach(engine_).ok());
  }
  ~EngineGroupTest() override {
    group_.detach(engine_);
    EXPECT_EQ(engine_.asleep(), 0) << "an engine was left asleep";
  }
  bool readable() const { return os::wait_readable(group_.descriptor(), milliseconds(0)); }
  bool has_news() const { return engine_.taken() > 0; }
  bool prepare_wait() {
    return group_.prepare_wait([&] { return has_news(); });
  }
  bool wait(milliseconds timeout) {
    return group_.wait(timeout, [&] { return has_news(); });
  }

  EngineGroup group_{true, WaitKind::kDescriptor};
  FakeEngine engine_{group_};
};

TEST_F(EngineGroupTest, ProgressDrivesEveryAttachedEngine) {
  FakeEngine second(group_);
  ASSERT_TRUE(group_.attach(second).ok());
  engine_.post();
  second.post();
  group_.progress();
  EXPECT_EQ(engine_.taken(), 1);
  EXPECT_EQ(second.taken(), 1);
  group_.detach(second);
}

TEST_F(EngineGroupTest, AnEngineThatLeftIsNotDriven) {
  group_.detach(engine_);
  engine_.post();
  group_.progress();
  EXPECT_EQ(engine_.taken(), 0);
}

TEST_F(EngineGroupTest, AttachingTwiceCountsOnce) {
  ASSERT_TRUE(group_.attach(engine_).ok());
  group_.progress();
  EXPECT_EQ(engine_.progressed(), 1);
  group_.detach(engine_);
  group_.progress();
  EXPECT_EQ(engine_.progressed(), 1);
}

TEST_F(EngineGroupTest, WaitingTakesInWhatIsThere) {
  engine_.post();
  EXPECT_TRUE(wait(milliseconds(0)));
}

TEST_F(EngineGroupTest, WaitingEndsWhenTheTimeIsOver) {
  EXPECT_FALSE(wait(milliseconds(0)));
  EXPECT_FALSE(wait(milliseconds(5)));
}

TEST_F(EngineGroupTest, AWaitEndsWhenSomethingArrives) {
  std::thread peer([&] {
    while (engine_.asleep() == 0) std::this_thread::yield();
    engine_.post();
  });
  EXPECT_TRUE(wait(kForever));
  peer.join();
}

TEST_F(EngineGroupTest, AWaitEndsForNewsThatNoEngineBrought) {
  std::atomic<bool> news{false};
  std::thread other([&] {
    while (engine_.asleep() == 0) std::this_thread::yield();
    news = true;
    group_.notify();
  });
  EXPECT_TRUE(group_.wait(kForever, [&] { return news.load(); }));
  other.join();
}

TEST_F(EngineGroupTest, ASignalEndsAWait) {
  std::thread other([&] {
    while (engine_.asleep() == 0) std::this_thread::yield();
    group_.signal();
  });
  EXPECT_FALSE(wait(kForever));
  other.join();
}

TEST_F(EngineGroupTest, ASignalWithoutAWaiterEndsTheNextWaitAndNoLaterOne) {
  group_.signal();
  group_.signal();
  EXPECT_FALSE(wait(kForever));
  engine_.post();
  EXPECT_TRUE(wait(kForever));
}

TEST_F(EngineGroupTest, NewsCountMoreThanASignal) {
  engine_.post();
  group_.signal();
  EXPECT_TRUE(wait(kForever));
}

TEST_F(EngineGroupTest, ACancelledThreadLeavesNoEngineAsleepAndTheLeadToOthers) {
  pthread_t sleeper{};
  std::function<void()> sleep = [this] { wait(kForever); };
  const auto run = [](void* body) -> void* {
    (*static_cast<std::function<void()>*>(body))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&sleeper, nullptr, run, &sleep), 0);
  while (engine_.asleep() == 0) std::this_thread::yield();
  void* result = nullptr;
  EXPECT_EQ(pthread_cancel(sleeper), 0);
  EXPECT_EQ(pthread_join(sleeper, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_EQ(engine_.asleep(), 0);
  std::thread peer([&] {
    while (engine_.asleep() == 0) std::this_thread::yield();
    engine_.post();
  });
  EXPECT_TRUE(wait(kForever));
  peer.join();
}

TEST_F(EngineGroupTest, NoThreadMayWaitWhileNewsAreThere) {
  engine_.post();
  EXPECT_FALSE(prepare_wait());
  EXPECT_EQ(engine_.asleep(), 0);
}

TEST_F(EngineGroupTest, NoThreadMayWaitAfterASignal) {
  group_.signal();
  EXPECT_FALSE(prepare_wait());
}

TEST_F(EngineGroupTest, AnArrivalMakesTheDescriptorReadable) {
  ASSERT_TRUE(prepare_wait());
  EXPECT_FALSE(readable());
  engine_.post();
  EXPECT_TRUE(readable());
}

TEST_F(EngineGroupTest, NotifyAndSignalMakeTheDescriptorReadable) {
  ASSERT_TRUE(prepare_wait());
  group_.notify();
  EXPECT_TRUE(readable());
  ASSERT_TRUE(prepare_wait());
  EXPECT_FALSE(readable());
  group_.signal();
  EXPECT_TRUE(readable());
}

TEST_F(EngineGroupTest, PreparingAgainLeavesEveryEngineAsleepOnce) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(prepare_wait());
  EXPECT_EQ(engine_.asleep(), 1);
}

TEST_F(EngineGroupTest, TheSleepCanBeEndedWithoutProgress) {
  ASSERT_TRUE(prepare_wait());
  const int before = engine_.progressed();
  group_.end_wait();
  EXPECT_EQ(engine_.asleep(), 0);
  EXPECT_EQ(engine_.progressed(), before);
  EXPECT_TRUE(readable()) << "a sleeping thread must poll";
}

TEST_F(EngineGroupTest, ProgressEndsTheSleepOfEveryEngine) {
  ASSERT_TRUE(prepare_wait());
  group_.progress();
  EXPECT_EQ(engine_.asleep(), 0);
}

TEST_F(EngineGroupTest, AnEngineThatLeavesASleepingGroupIsWokenUp) {
  ASSERT_TRUE(prepare_wait());
  group_.detach(engine_);
  EXPECT_EQ(engine_.asleep(), 0);
  engine_.post();
  EXPECT_FALSE(readable());
}

TEST_F(EngineGroupTest, AnEngineThatJoinsASleepingGroupWakesIt) {
  ASSERT_TRUE(prepare_wait());
  FakeEngine second(group_);
  ASSERT_TRUE(group_.attach(second).ok());
  EXPECT_TRUE(readable()) << "what arrives at the new engine would wake no thread";
  group_.detach(second);
}

TEST(EngineGroup, WithoutAWaitObjectThereIsNoDescriptor) {
  EngineGroup group(true, WaitKind::kNone);
  ASSERT_TRUE(group.open().ok());
  EXPECT_EQ(group.descriptor(), -1);
  FakeEngine engine(group);
  ASSERT_TRUE(group.attach(engine).ok());
  engine.post();
  group.notify();
  group.progress();
  EXPECT_EQ(engine.taken(), 1);
  group.detach(engine);
}

TEST(EngineGroup, WithoutAWaitObjectOneLooksUntilThereAreNews) {
  EngineGroup group(true, WaitKind::kYield);
  ASSERT_TRUE(group.open().ok());
  EXPECT_EQ(group.descriptor(), -1);
  FakeEngine engine(group);
  ASSERT_TRUE(group.attach(engine).ok());
  EXPECT_FALSE(group.wait(milliseconds(5), [&] { return engine.taken() > 0; }));
  std::thread other([&] { engine.post(); });
  EXPECT_TRUE(group.wait(kForever, [&] { return engine.taken() > 0; }));
  EXPECT_EQ(engine.asleep(), 0);
  other.join();
  group.detach(engine);
}

TEST_F(EngineGroupTest, AnEngineThatNeverRestsIsLookedAtMoreAndMoreSeldom) {
  // Work that is never announced and never done.
  class Restless : public FakeEngine {
   public:
    using FakeEngine::FakeEngine;
    bool fall_asleep() override { return FakeEngine::fall_asleep() && false; }
  } restless(group_);
  ASSERT_TRUE(group_.attach(restless).ok());
  EXPECT_FALSE(wait(milliseconds(300)));
  EXPECT_LT(restless.progressed(), 2000);
  group_.detach(restless);
}

TEST_F(EngineGroupTest, AThreadThatEntersProgressDoesNotWaitForAnother) {
  // An engine that enters its own group: with the lock held it would never return.
  class Nested : public FakeEngine {
   public:
    explicit Nested(EngineGroup& group) : FakeEngine(group), inner_(group) {}
    void progress() override {
      std::thread([this] { inner_.progress(); }).join();
    }

   private:
    EngineGroup& inner_;
  } nested(group_);
  ASSERT_TRUE(group_.attach(nested).ok());
  group_.progress();
  EXPECT_EQ(engine_.progressed(), 1);
  group_.detach(nested);
}

TEST_F(EngineGroupTest, AnotherThreadsProgressDoesNotTakeTheNewsFromASleeper) {
  // Without a wake-up the sleeper would find the news at the end of its nap only: in some round it
  // has to be quicker than that.
  bool woken = false;
  for (int round = 0; round < 5 && !woken; ++round) {
    const int before = engine_.taken();
    std::atomic<bool> done{false};
    std::thread sleeper([&] {
      EXPECT_TRUE(group_.wait(kForever, [&] { return engine_.taken() > before; }));
      done = true;
    });
    while (engine_.asleep() == 0) std::this_thread::yield();
    while (engine_.taken() == before) {
      engine_.post();
      group_.progress();
    }
    for (int i = 0; i < 250 && !done; ++i) std::this_thread::sleep_for(milliseconds(1));
    woken = done;
    sleeper.join();
  }
  EXPECT_TRUE(woken);
}

TEST_F(EngineGroupTest, TwoThreadsThatWaitLetEachOtherSleep) {
  // Were each to wake the other by going to sleep, they would look tens of thousands of times.
  std::thread other([&] { EXPECT_FALSE(wait(milliseconds(300))); });
  EXPECT_FALSE(wait(milliseconds(300)));
  other.join();
  EXPECT_LT(engine_.progressed(), 2000);
}

TEST_F(EngineGroupTest, TwoThreadsThatWaitForDifferentNewsDoNotTakeEachOthersWakeUps) {
  // Each wake-up that is lost costs a nap of half a second: forty would not fit into the time.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(15);
  std::atomic<bool> finished{false};
  std::atomic<int> answered{0};
  std::thread patient([&] {
    while (!finished) group_.wait(kForever, [&] { return finished.load(); });
  });
  std::thread eager([&] {
    while (answered < 40) {
      group_.wait(kForever, [&] { return engine_.taken() > answered; });
      answered = engine_.taken();
    }
  });
  int posted = 0;
  for (; posted < 40; ++posted) {
    engine_.post();
    while (answered <= posted && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }
  EXPECT_LT(std::chrono::steady_clock::now(), end);
  eager.join();
  finished = true;
  group_.signal();
  patient.join();
}

// A thread that answers every arrival after sleeping on the descriptor, as programs with their own
// poll(2) do: no nap hides a wake-up that was lost.
class Sleeper {
 public:
  Sleeper(EngineGroup& group, FakeEngine& engine) : group_(group), engine_(engine) {}
  ~Sleeper() { thread_.join(); }
  int answered() const { return answered_; }
  bool lost() const { return lost_; }
  void finish() { finished_ = true; }

 private:
  void run() {
    while (!finished_ && !lost_) {
      const int seen = answered_;
      if (group_.prepare_wait([&] { return engine_.taken() > seen || finished_; })) {
        lost_ = !os::wait_readable(group_.descriptor(), std::chrono::seconds(20));
      }
      group_.progress();
      answered_ = engine_.taken();
    }
  }

  EngineGroup& group_;
  FakeEngine& engine_;
  std::atomic<int> answered_{0};
  std::atomic<bool> finished_{false};
  std::atomic<bool> lost_{false};
  std::thread thread_{[this] { run(); }};
};

TEST_F(EngineGroupTest, NoWakeUpIsLostHoweverArrivalAndSleepMeet) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  Sleeper sleeper(group_, engine_);
  int posted = 0;
  while (!sleeper.lost() && std::chrono::steady_clock::now() < end) {
    engine_.post();
    ++posted;
    while (sleeper.answered() < posted && !sleeper.lost()) std::this_thread::yield();
    for (int i = 0; i < posted % 100; ++i) std::this_thread::yield();  // it may be anywhere now
  }
  EXPECT_FALSE(sleeper.lost()) << "after " << posted << " arrivals";
  EXPECT_EQ(engine_.taken(), posted);
  sleeper.finish();
  group_.notify();
  engine_.post();
}

}  // namespace
}  // namespace weft::device
