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

#include "memory/access_guard.h"
#include "memory/region_table.h"

namespace weft::memory {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kPage = kStripePage;

// A counter that is not atomic by itself, for several processes.
struct Shared {
  volatile std::uint64_t counter;
  std::atomic<int> ready;
};

struct StripeLocksTest : testing::Test {
  std::string directory = "/dev/shm/weft-test-XXXXXX";
  std::unique_ptr<RegionTable> table;
  Shared* shared = nullptr;
  std::vector<pid_t> children;

  StripeLocksTest() {
    EXPECT_NE(::mkdtemp(directory.data()), nullptr);
    table = std::move(RegionTable::create(directory)).value();
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
  std::shared_ptr<RegionTableView> open() const {
    return RegionTableView::open(directory, table->name()).value();
  }
  static std::unique_ptr<AccessGuard> attach_to(std::shared_ptr<RegionTableView> opened) {
    return std::move(AccessGuard::attach(std::move(opened))).value();
  }
  std::unique_ptr<AccessGuard> attach() const { return attach_to(open()); }
  // The words of the stripes, for scribbling.
  os::Mapping words() const {
    const auto file = os::SharedFile::open(directory + "/" + table->name()).value();
    return std::move(file->map(kStripesAt, kStripes * sizeof(Stripe))).value();
  }
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
  // A process that takes the stripe of an address and never lets it go.
  pid_t start_holder(std::uint64_t address) {
    return start([&] {
      const auto user = attach();
      const int error = user->stripes().lock(address, 1, LockWait::kUsual);
      ++shared->ready;
      while (error == 0) ::pause();
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
  ASSERT_EQ(one->stripes().lock(kPage, 8, LockWait::kUsual), 0);
  EXPECT_EQ(two->stripes().lock(kPage + 100, 8, LockWait::kBrief), EBUSY);
  EXPECT_EQ(two->stripes().lock(3 * kPage, 8, LockWait::kBrief), 0) << "another page";
  two->stripes().unlock();
  one->stripes().unlock();
  EXPECT_EQ(two->stripes().lock(kPage, 8, LockWait::kBrief), 0);
}

TEST_F(StripeLocksTest, BytesAcrossTwoPagesTakeTheStripesOfBoth) {
  const auto one = attach();
  const auto two = attach();
  ASSERT_EQ(one->stripes().lock(2 * kPage - 4, 8, LockWait::kUsual), 0);
  EXPECT_EQ(two->stripes().lock(kPage, 8, LockWait::kBrief), EBUSY);
  EXPECT_EQ(two->stripes().lock(2 * kPage, 8, LockWait::kBrief), EBUSY);
  EXPECT_EQ(two->stripes().lock(3 * kPage - 4, 8, LockWait::kBrief), EBUSY);
  EXPECT_EQ(two->stripes().lock(3 * kPage, 8, LockWait::kBrief), 0)
      << "what was taken before the refusal is free again";
  two->stripes().unlock();
  one->stripes().unlock();
  // The last stripe and the first one are neighbours, too.
  EXPECT_EQ(two->stripes().lock(kStripes * kPage - 1, 2, LockWait::kBrief), 0);
  EXPECT_EQ(one->stripes().lock(0, 1, LockWait::kBrief), EBUSY);
}

TEST_F(StripeLocksTest, ManyUsersInThreadsAndProcessesLoseNoCount) {
  constexpr int kTurns = 3000;
  const auto hammer = [&](const std::shared_ptr<RegionTableView>& opened) {
    const auto user = attach_to(opened);
    for (int i = 0; i < kTurns; ++i) {
      if (user->stripes().lock(2 * kPage - 4, 8, LockWait::kUsual) != 0) return;
      shared->counter = shared->counter + 1;
      user->stripes().unlock();
    }
  };
  std::vector<pid_t> processes;
  for (int i = 0; i < 3; ++i) {
    processes.push_back(start([&] {
      ++shared->ready;
      hammer(open());
    }));
  }
  // One mapping for both: ThreadSanitizer takes the same word at two addresses for two words.
  const std::shared_ptr<RegionTableView> opened = open();
  std::thread one(hammer, opened);
  std::thread two(hammer, opened);
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
  const pid_t holder = start_holder(kPage);
  const auto user = attach();
  EXPECT_EQ(user->stripes().lock(kPage, 8, LockWait::kBrief), EBUSY);
  end(holder);
  EXPECT_EQ(user->stripes().lock(kPage, 8, LockWait::kUsual), 0);
}

TEST_F(StripeLocksTest, ADeadHolderIsSucceededAlsoWhenItsRecordHasANewOwner) {
  const pid_t holder = start_holder(kPage);
  end(holder);
  const auto heir = attach();  // in the record of the dead one, which vouches for it again
  const auto user = attach();
  EXPECT_EQ(user->stripes().lock(kPage, 8, LockWait::kBrief), 0);
}

TEST_F(StripeLocksTest, AHolderThatStandsStillIsAnErrorAfterAWhile) {
  const pid_t holder = start_holder(kPage);
  ASSERT_EQ(::kill(holder, SIGSTOP), 0);
  const auto user = attach();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(user->stripes().lock(kPage, 8, LockWait::kUsual), ETIMEDOUT);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 2s);
  EXPECT_EQ(user->stripes().lock(5 * kPage, 8, LockWait::kUsual), 0) << "other memory is free";
}

TEST_F(StripeLocksTest, AWordThatNoUserWritesIsFree) {
  const os::Mapping memory = words();
  const auto user = attach();
  for (const std::uint64_t garbage : {~std::uint64_t{0}, std::uint64_t{0xffffffff} << 32,
                                      std::uint64_t{kMaxUsers + 1}, std::uint64_t{0x3fff}}) {
    memory.at<Stripe>(0)[1].holder = garbage;
    EXPECT_EQ(user->stripes().lock(kPage, 8, LockWait::kUsual), 0) << garbage;
    user->stripes().unlock();
    EXPECT_EQ(memory.at<Stripe>(0)[1].holder, 0u);
  }
}

TEST_F(StripeLocksTest, AWordThatNamesALivingUserThatDoesNotHoldItIsAnErrorAndNoHang) {
  const auto victim = attach();
  const auto user = attach();
  const os::Mapping memory = words();
  memory.at<Stripe>(0)[1].holder = StripeWord{0, 7, 7}.pack();
  EXPECT_EQ(user->stripes().lock(kPage, 8, LockWait::kUsual), ETIMEDOUT);
}

TEST_F(StripeLocksTest, AnOverwrittenStripeIsNotReleasedTwice) {
  const auto user = attach();
  const os::Mapping memory = words();
  ASSERT_EQ(user->stripes().lock(kPage, 8, LockWait::kUsual), 0);
  const std::uint64_t other = StripeWord{5, 1, 1}.pack();
  memory.at<Stripe>(0)[1].holder = other;
  user->stripes().unlock();
  EXPECT_EQ(memory.at<Stripe>(0)[1].holder, other);
}

TEST_F(StripeLocksTest, AUserThatDetachesLetsGo) {
  auto one = attach();
  const auto two = attach();
  ASSERT_EQ(one->stripes().lock(kPage, 8, LockWait::kUsual), 0);
  one.reset();
  EXPECT_EQ(two->stripes().lock(kPage, 8, LockWait::kBrief), 0);
}

}  // namespace
}  // namespace weft::memory
