// SPDX-License-Identifier: BSD-2-Clause
// Is a stripe one user's at a time, and is the stripe of a dead user taken over?
#include "memory/stripe_locks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "memory/stripe_table.h"

namespace weft::memory {
namespace {

using namespace std::chrono_literals;

// A counter that is not atomic by itself, for several processes.
struct Shared {
  volatile std::uint64_t counter;
  std::atomic<int> ready;
};

// A process's record and a holder of its own, as if in a process of its own.
struct User {
  explicit User(const std::string& directory) : User(std::make_shared<StripeTable>(directory)) {}
  explicit User(std::shared_ptr<StripeTable> of_process)
      : table(std::move(of_process)), locks(table) {}
  int lock(std::uint64_t page, LockWait wait) { return locks.lock(page, page, wait); }
  void unlock() { locks.unlock(); }

  std::shared_ptr<StripeTable> table;
  StripeLocks locks;
};

struct StripeLocksTest : testing::Test {
  std::string directory = "/dev/shm/weft-test-XXXXXX";
  Shared* shared = nullptr;
  std::vector<pid_t> children;

  StripeLocksTest() {
    EXPECT_NE(::mkdtemp(directory.data()), nullptr);
    void* place =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared = new (place) Shared{};
  }
  ~StripeLocksTest() override {
    for (const pid_t child : children) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
    ::munmap(shared, sizeof(Shared));
    std::filesystem::remove_all(directory);
  }
  std::unique_ptr<User> attach() const { return std::make_unique<User>(directory); }
  template <class Life>
  pid_t start(Life life) {
    const int before = shared->ready;
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      life();
      ::_exit(0);
    }
    children.push_back(child);
    while (shared->ready == before) std::this_thread::sleep_for(1ms);
    return child;
  }
  // A process that takes the stripe of a page and never lets it go.
  pid_t start_holder(std::uint64_t page) {
    return start([&] {
      const auto user = attach();
      const int error = user->lock(page, LockWait::kUsual);
      ++shared->ready;
      if (error != 0) return;
      for (;;) ::pause();
    });
  }
  void end(pid_t child) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    std::erase(children, child);
  }
};

TEST_F(StripeLocksTest, AHeldStripeHasOneHolder) {
  const auto one = attach();
  const auto two = attach();
  ASSERT_EQ(one->lock(1, LockWait::kUsual), 0);
  EXPECT_EQ(two->lock(1, LockWait::kBrief), EBUSY);
  EXPECT_EQ(two->lock(3, LockWait::kBrief), 0) << "another page";
  two->unlock();
  one->unlock();
  EXPECT_EQ(two->lock(1, LockWait::kBrief), 0);
}

TEST_F(StripeLocksTest, TwoPagesTakeTheStripesOfBoth) {
  const auto one = attach();
  const auto two = attach();
  ASSERT_EQ(one->locks.lock(1, 2, LockWait::kUsual), 0);
  EXPECT_EQ(two->lock(1, LockWait::kBrief), EBUSY);
  EXPECT_EQ(two->lock(2, LockWait::kBrief), EBUSY);
  EXPECT_EQ(two->locks.lock(3, 2, LockWait::kBrief), EBUSY);
  EXPECT_EQ(two->lock(3, LockWait::kBrief), 0)
      << "the stripe that was taken before the refusal is free again";
  two->unlock();
  one->unlock();
  // The last stripe and the first one are neighbours, too.
  EXPECT_EQ(two->locks.lock(kStripes - 1, kStripes, LockWait::kBrief), 0);
  EXPECT_EQ(one->lock(0, LockWait::kBrief), EBUSY);
}

TEST_F(StripeLocksTest, TheLastUserRemovesTheFile) {
  auto one = attach();
  ASSERT_EQ(one->lock(1, LockWait::kUsual), 0);
  const pid_t other = start_holder(2);
  one.reset();
  EXPECT_FALSE(std::filesystem::is_empty(directory)) << "another process uses it";
  one = attach();
  EXPECT_EQ(one->lock(2, LockWait::kBrief), EBUSY);
  end(other);
  one.reset();
  EXPECT_TRUE(std::filesystem::is_empty(directory));
}

TEST_F(StripeLocksTest, WithoutADirectoryTheProcessHasStripesOfItsOwn) {
  User user{std::string()};
  EXPECT_EQ(user.lock(1, LockWait::kUsual), 0);
  User other(user.table);
  EXPECT_EQ(other.lock(1, LockWait::kBrief), EBUSY);
  User gone(directory + "/none");
  EXPECT_EQ(gone.lock(1, LockWait::kUsual), 0);
}

TEST_F(StripeLocksTest, ManyUsersInThreadsAndProcessesLoseNoCount) {
  constexpr int kTurns = 3000;
  const auto hammer = [&](const std::shared_ptr<StripeTable>& table) {
    User user(table);
    for (int i = 0; i < kTurns; ++i) {
      if (user.locks.lock(1, 2, LockWait::kUsual) != 0) return;
      shared->counter = shared->counter + 1;
      user.unlock();
    }
  };
  std::vector<pid_t> processes;
  processes.reserve(3);
  for (int i = 0; i < 3; ++i) {
    processes.push_back(start([&] {
      ++shared->ready;
      hammer(std::make_shared<StripeTable>(directory));
    }));
  }
  // One mapping for both: ThreadSanitizer takes the same word at two addresses for two words.
  const auto table = std::make_shared<StripeTable>(directory);
  std::thread one(hammer, table);
  std::thread two(hammer, table);
  one.join();
  two.join();
  for (const pid_t process : processes) {
    int status = 0;
    ::waitpid(process, &status, 0);
    std::erase(children, process);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(shared->counter, 5u * kTurns);
}

TEST_F(StripeLocksTest, ADeadHolderIsSucceeded) {
  const pid_t holder = start_holder(1);
  const auto user = attach();
  EXPECT_EQ(user->lock(1, LockWait::kBrief), EBUSY);
  end(holder);
  EXPECT_EQ(user->lock(1, LockWait::kUsual), 0);
}

TEST_F(StripeLocksTest, ADeadHolderIsSucceededAlsoWhenItsRecordHasANewOwner) {
  const pid_t holder = start_holder(1);
  end(holder);
  const auto heir = attach();  // in the record of the dead one, which vouches for it again
  heir->table->stripes();
  const auto user = attach();
  EXPECT_EQ(user->lock(1, LockWait::kBrief), 0);
}

TEST_F(StripeLocksTest, AHolderThatStandsStillIsAnErrorAfterAWhile) {
  const pid_t holder = start_holder(1);
  ASSERT_EQ(::kill(holder, SIGSTOP), 0);
  const auto user = attach();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(user->lock(1, LockWait::kUsual), ETIMEDOUT);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 2s);
  EXPECT_EQ(user->lock(5, LockWait::kUsual), 0) << "other memory is free";
}

TEST_F(StripeLocksTest, AWordThatNoUserWritesIsFree) {
  const auto user = attach();
  Stripe* const stripes = user->table->stripes();
  for (const std::uint64_t garbage : {~std::uint64_t{0}, std::uint64_t{0xffffffff} << 32,
                                      std::uint64_t{kMaxStripeUsers + 1}, std::uint64_t{0x3fff}}) {
    stripes[1].holder = garbage;
    EXPECT_EQ(user->lock(1, LockWait::kUsual), 0) << garbage;
    user->unlock();
    EXPECT_EQ(stripes[1].holder, 0u);
  }
}

TEST_F(StripeLocksTest, AWordThatNamesALivingUserThatDoesNotHoldItIsAnErrorAndNoHang) {
  const auto victim = attach();
  victim->table->stripes();
  const auto user = attach();
  Stripe* const stripes = user->table->stripes();
  stripes[1].holder = StripeWord{0, 7, 7}.pack();
  EXPECT_EQ(user->lock(1, LockWait::kUsual), ETIMEDOUT);
}

TEST_F(StripeLocksTest, AnOverwrittenStripeIsNotReleasedTwice) {
  const auto user = attach();
  Stripe* const stripes = user->table->stripes();
  ASSERT_EQ(user->lock(1, LockWait::kUsual), 0);
  const std::uint64_t other = StripeWord{5, 1, 1}.pack();
  stripes[1].holder = other;
  user->unlock();
  EXPECT_EQ(stripes[1].holder, other);
}

TEST_F(StripeLocksTest, AUserThatDetachesLetsGo) {
  auto one = attach();
  const auto two = attach();
  ASSERT_EQ(one->lock(1, LockWait::kUsual), 0);
  one.reset();
  EXPECT_EQ(two->lock(1, LockWait::kBrief), 0);
}

}  // namespace
}  // namespace weft::memory
